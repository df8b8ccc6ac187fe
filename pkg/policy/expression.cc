// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/config_section.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

// Longer keys cost more to keep in an index than to look up, and nobody writes them by hand.
constexpr size_t kMaxIndexedKey = 256;

std::optional<std::string_view> Label(const StringMap& labels, std::string_view name) {
  const auto found = labels.find(name);
  if (found == labels.end()) return std::nullopt;
  return found->second;
}

// Keys with the same meaning for a container and its pod.
std::optional<std::string_view> ResolveCommon(std::string_view key, const Pod& pod) {
  if (key == "namespace") return pod.namespace_name;
  if (key == "qosclass") return ToString(pod.qos);
  if (key == "uid") return pod.uid.value();
  return std::nullopt;
}

std::optional<std::string_view> ResolveSingle(std::string_view key, const Pod& pod,
                                              const Container& container) {
  constexpr std::string_view kPod = "pod/";
  constexpr std::string_view kLabels = "labels/";
  if (!key.starts_with(kPod)) {
    if (key == "name") return container.name;
    if (key == "id") return container.id.value();
    // The rest of the key is one label, which may contain slashes.
    if (key.starts_with(kLabels)) return Label(container.labels, key.substr(kLabels.size()));
    return ResolveCommon(key, pod);
  }
  key.remove_prefix(kPod.size());
  if (key == "name") return pod.name;
  if (key == "id") return pod.id.value();
  if (key.starts_with(kLabels)) return Label(pod.labels, key.substr(kLabels.size()));
  return ResolveCommon(key, pod);
}

bool IsPunctuation(char c) {
  return std::ispunct(static_cast<unsigned char>(c)) != 0;
}

struct JointKey {
  char key_separator = ':';
  char value_separator = ':';
  std::string_view keys;
};

std::optional<JointKey> ParseJointKey(std::string_view key) {
  if (key.size() < 2 || !IsPunctuation(key[0])) return std::nullopt;
  if (key[0] == ':' && !IsPunctuation(key[1])) return JointKey{.keys = key.substr(1)};
  if (!IsPunctuation(key[1])) return std::nullopt;
  // The key may begin with ":KV..." or with "KV...".
  if (key[0] == ':' && key.size() > 2 && IsPunctuation(key[2])) key.remove_prefix(1);
  return JointKey{key[0], key[1], key.substr(2)};
}

bool IsKnownSingle(std::string_view key) {
  constexpr std::array<std::string_view, 5> kKeys = {"name", "namespace", "qosclass", "id", "uid"};
  const auto below = [&key](std::string_view map) {
    return key.starts_with(map) && key.size() > map.size();
  };
  if (below("tags/")) return true;
  if (below("pod/")) key.remove_prefix(4);
  return below("labels/") || std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

bool IsKnownKey(std::string_view key) {
  const std::optional<JointKey> joint = ParseJointKey(key);
  if (!joint) return IsKnownSingle(key);
  const std::vector<std::string_view> parts = Split(joint->keys, joint->key_separator);
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), IsKnownSingle);
}

}  // namespace

std::optional<std::string_view> ResolveKey(std::string_view key, const Pod& pod,
                                           const Container& container, std::string& scratch) {
  const std::optional<JointKey> joint = ParseJointKey(key);
  if (!joint) return ResolveSingle(key, pod, container);
  scratch.clear();
  bool any = false;
  bool first = true;
  for (const std::string_view part : Split(joint->keys, joint->key_separator)) {
    const std::optional<std::string_view> value = ResolveSingle(part, pod, container);
    any |= value.has_value();
    if (!first) scratch += joint->value_separator;
    first = false;
    scratch += value.value_or("");
  }
  if (!any) return std::nullopt;
  return scratch;
}

namespace {

// The names of the operators, in the order of Expression::Operator.
constexpr std::array<std::string_view, 11> kOperators = {
    "Equals",     "NotEqual", "In",         "NotIn",      "Exists",     "NotExists",
    "AlwaysTrue", "Matches",  "MatchesNot", "MatchesAny", "MatchesNone"};

std::string UnknownOperator(std::string_view text) {
  const std::vector<std::string_view> known(kOperators.begin(), kOperators.end());
  return fmt::format("\"{}\" is not one of {}{}", Printable(text, 64), fmt::join(kOperators, ", "),
                     DidYouMean(text, known));
}

}  // namespace

std::optional<Expression::Operator> Expression::ParseOperator(std::string_view text) {
  if (EqualsIgnoreCase(text, "NotExist")) return Operator::kNotExists;
  for (size_t i = 0; i < kOperators.size(); ++i)
    if (EqualsIgnoreCase(text, kOperators[i])) return static_cast<Operator>(i);
  return std::nullopt;
}

StatusOr<Expression> Expression::Parse(const ConfigNode& node, std::string_view path) {
  const auto below = [path](std::string_view name) {
    return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
  };
  if (node.kind != ConfigNode::Kind::kMap) {
    return ErrorAt(node, path, "an expression is a map of key, operator and values");
  }
  Expression expression;
  bool has_operator = false;
  for (const auto& [name, line, value] : node.entries) {
    if (EqualsIgnoreCase(name, "key") && expression.key_.empty() &&
        value.kind == ConfigNode::Kind::kScalar) {
      expression.key_ = value.text;
    } else if (EqualsIgnoreCase(name, "operator") && !has_operator &&
               value.kind == ConfigNode::Kind::kScalar) {
      const std::optional<Operator> op = ParseOperator(value.text);
      if (!op) return ErrorAt(value, below("operator"), UnknownOperator(value.text));
      expression.operator_ = *op;
      has_operator = true;
    } else if (EqualsIgnoreCase(name, "values") && expression.values_.empty()) {
      StatusOr<std::vector<std::string>> values = TextsOf(value);
      if (!values.ok()) return ErrorAt(value, below("values"), Message(values.status()));
      expression.values_ = std::move(*values);
    } else {
      return ErrorAt(value, below(name), "not part of an expression");
    }
  }
  if (!has_operator) return ErrorAt(node, below("operator"), "is missing");
  const Status status = expression.CheckValues();
  if (!status.ok()) return ErrorAt(node, path, Message(status));
  return expression;
}

Status Expression::CheckValues() const {
  if (operator_ == Operator::kAlwaysTrue) return OkStatus();
  if (key_.empty()) return InvalidArgument("the key is missing");
  if (!IsKnownKey(key_)) {
    return InvalidArgument(
        "there is no key \"{}\": keys are name, namespace, qosclass, id, uid, labels/K and pod/ "
        "followed by one of these",
        Printable(key_, 64));
  }
  switch (operator_) {
    case Operator::kMatches:
    case Operator::kMatchesNot:
    case Operator::kMatchesAny:
    case Operator::kMatchesNone:
      for (const std::string& glob : values_) {
        if (!IsGlob(glob)) return InvalidArgument("\"{}\" has [ without ]", Printable(glob, 64));
      }
      break;
    default:
      break;
  }
  switch (operator_) {
    case Operator::kEquals:
    case Operator::kNotEqual:
    case Operator::kMatches:
    case Operator::kMatchesNot:
      if (values_.size() != 1) return InvalidArgument("the operator takes one value");
      return OkStatus();
    case Operator::kExists:
    case Operator::kNotExists:
      if (!values_.empty()) return InvalidArgument("the operator takes no values");
      return OkStatus();
    default:
      return OkStatus();
  }
}

Expression Expression::In(std::string_view key, std::vector<std::string> values) {
  Expression expression;
  expression.key_ = key;
  expression.operator_ = Operator::kIn;
  expression.values_ = std::move(values);
  return expression;
}

bool Expression::Indexable() const {
  // The key "id" is excluded, since the runtime gives a container its id only after the placement.
  constexpr std::string_view kId = "id";
  if (key_.size() > kMaxIndexedKey) return false;
  const std::optional<JointKey> joint = ParseJointKey(key_);
  if (!joint) return key_ != kId;
  const std::vector<std::string_view> parts = Split(joint->keys, joint->key_separator);
  return std::find(parts.begin(), parts.end(), kId) == parts.end();
}

bool Expression::AnyEquals(std::string_view text) const {
  return std::find(values_.begin(), values_.end(), text) != values_.end();
}

bool Expression::AnyEqualsOrStar(std::string_view text) const {
  return AnyEquals(text) || AnyEquals("*");
}

bool Expression::AnyMatches(std::string_view text) const {
  return std::any_of(values_.begin(), values_.end(),
                     [text](const std::string& glob) { return MatchesGlob(glob, text); });
}

bool Expression::Holds(const Pod& pod, const Container& container) const {
  if (operator_ == Operator::kAlwaysTrue) return true;
  std::string scratch;
  return HoldsFor(ResolveKey(key_, pod, container, scratch));
}

bool Expression::HoldsFor(std::optional<std::string_view> value) const {
  switch (operator_) {
    case Operator::kEquals:
    case Operator::kIn:
      return value && AnyEqualsOrStar(*value);
    case Operator::kNotEqual:
      return !value || !AnyEquals(*value);
    case Operator::kNotIn:
      return !value || !AnyEqualsOrStar(*value);
    case Operator::kExists:
      return value.has_value();
    case Operator::kNotExists:
      return !value.has_value();
    case Operator::kMatches:
    case Operator::kMatchesAny:
      return value && AnyMatches(*value);
    case Operator::kMatchesNot:
    case Operator::kMatchesNone:
      return !value || !AnyMatches(*value);
    case Operator::kAlwaysTrue:
      return true;
  }
  return false;
}

}  // namespace resmgr
