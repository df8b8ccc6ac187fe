// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"

namespace resmgr {

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
  // "" matches everything. kInvalidArgument quotes the malformed requirement.
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
