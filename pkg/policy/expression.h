// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// A container's value for a key of an expression; nullopt where it has none:
//   name namespace qosclass id uid labels/KEY    of the container (namespace, class and UID are its
//                                                pod's)
//   pod/name pod/namespace pod/qosclass pod/id pod/uid pod/labels/KEY
//   :A:B  KVA...                                 joint keys: the values of A, B, ..., joined; K
//                                                separates the keys and V the values, each a single
//                                                punctuation mark; `:` alone stands for both
// `tags/KEY` is accepted and never has a value: nothing here sets tags. The view refers to
// pod, container or `scratch`, in which joint keys are put together.
std::optional<std::string_view> ResolveKey(std::string_view key, const Pod& pod,
                                           const Container& container, std::string& scratch);

// One comparison, "KEY OPERATOR VALUES". Operators, without regard to case: Equals, NotEqual, In,
// NotIn, Exists, NotExists (NotExist), AlwaysTrue, Matches, MatchesNot, MatchesAny, MatchesNone;
// the last four take globs. "*" among the values of Equals, In and NotIn is any value. If the
// container has no value for the key, the negated operators hold.
class Expression {
 public:
  // Names of fields match without regard to case. InvalidArgument for a missing or unknown key, an
  // unknown operator or a wrong number of values; `path` is that of the expression in the
  // configuration, for the message.
  static StatusOr<Expression> Parse(const ConfigNode& node, std::string_view path = "");
  // An expression that holds if the key has one of these values.
  static Expression In(std::string_view key, std::vector<std::string> values);

  bool Holds(const Pod& pod, const Container& container) const;
  // Whether the expression holds for a container with this value of the key; nullopt if it has
  // none.
  bool HoldsFor(std::optional<std::string_view> value) const;

  std::string_view key() const { return key_; }
  bool IsAlwaysTrue() const { return operator_ == Operator::kAlwaysTrue; }
  // Whether an index may use the expression: the value of its key stays the same during a
  // container's life, and the key is not too long.
  bool Indexable() const;

 private:
  enum class Operator {
    kEquals,
    kNotEqual,
    kIn,
    kNotIn,
    kExists,
    kNotExists,
    kAlwaysTrue,
    kMatches,
    kMatchesNot,
    kMatchesAny,
    kMatchesNone,
  };
  static std::optional<Operator> ParseOperator(std::string_view text);
  Status CheckValues() const;
  bool AnyEquals(std::string_view text) const;
  bool AnyEqualsOrStar(std::string_view text) const;
  bool AnyMatches(std::string_view text) const;

  std::string key_;
  Operator operator_ = Operator::kAlwaysTrue;
  std::vector<std::string> values_;
};

}  // namespace resmgr
