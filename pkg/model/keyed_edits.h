// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace resmgr {

// Edits of things that have keys: environment variables, map entries, mounts. For each key the
// last edit counts; keys are in the order of their first edits. A value type, thread-compatible.
template <typename Value>
class KeyedEdits {
 public:
  struct Edit {
    std::string key;
    std::optional<Value> value;  // nullopt: what has the key is removed

    friend bool operator==(const Edit&, const Edit&) = default;
  };

  void Set(std::string_view key, Value value) { At(key) = std::move(value); }
  void Remove(std::string_view key) { At(key) = std::nullopt; }

  bool empty() const { return edits_.empty(); }
  // nullptr: there is none for the key.
  const Edit* Find(std::string_view key) const {
    const auto found = std::ranges::find(edits_, key, &Edit::key);
    return found == edits_.end() ? nullptr : &*found;
  }
  auto begin() const { return edits_.begin(); }
  auto end() const { return edits_.end(); }

  // All that `later` says wins.
  void Merge(KeyedEdits&& later) {
    for (Edit& edit : later.edits_)
      At(edit.key) = std::move(edit.value);
  }

  friend bool operator==(const KeyedEdits&, const KeyedEdits&) = default;

 private:
  std::optional<Value>& At(std::string_view key) {
    const auto found = std::ranges::find(edits_, key, &Edit::key);
    if (found != edits_.end()) return found->value;
    return edits_.emplace_back(Edit{std::string(key), std::nullopt}).value;
  }

  std::vector<Edit> edits_;
};

}  // namespace resmgr
