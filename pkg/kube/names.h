// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"

namespace resmgr {

// Checks names as the API server does (apimachinery/pkg/util/validation in Kubernetes; RFC 1123).

// Whether the name is a DNS subdomain (nodes, ConfigMaps, domains): lower-case letters, parts
// between dots begin and end with a letter or digit, at most 253 bytes.
bool IsSubdomain(std::string_view name);

// Whether the key is valid for a label or annotation: NAME or SUBDOMAIN/NAME.
bool IsLabelKey(std::string_view key);

// Whether all of `text` matches `pattern`: `*` matches any characters or none, `?` matches one,
// `[a-z_]` one of these and `[^a-z_]` one other; every other character matches itself, and so does
// a `[` without a `]`. For namespaces ("kube-*") and other Kubernetes names.
bool MatchesGlob(std::string_view pattern, std::string_view text);

// Whether each `[` of the pattern has a `]`.
bool IsGlob(std::string_view pattern);

// Chooses pods by their labels, as `kubectl get -l` does: requirements separated by commas, all of
// which must hold:
//
//   KEY=VALUE  KEY==VALUE     the label has the value
//   KEY!=VALUE                it has another one, or there is no such label
//   KEY in (A,B)              it has one of the values
//   KEY notin (A,B)           it has none of them, or there is no such label
//   KEY   !KEY                there is such a label; there is none
//
// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
// A value type.
class LabelSelector {
 public:
  // Matches everything.
  LabelSelector() = default;
  // "" matches everything. kInvalidArgument quotes the malformed requirement, also one with a key
  // or a value that no label can have.
  static StatusOr<LabelSelector> Parse(std::string_view text);

  bool Matches(const StringMap& labels) const;
  // Whether it matches everything.
  bool empty() const { return requirements_.empty(); }

 private:
  enum class Relation { kIn, kNotIn, kExists, kAbsent };
  struct Requirement {
    std::string key;
    Relation relation = Relation::kExists;
    std::vector<std::string> values{};
  };

  static StatusOr<Requirement> ParseRequirement(std::string_view text);
  static StatusOr<Requirement> ParseSet(std::string_view text, size_t open);

  std::vector<Requirement> requirements_;
};

}  // namespace resmgr
