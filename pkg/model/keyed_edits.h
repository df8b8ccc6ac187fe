// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pkg/base/ids.h"

namespace resmgr {

// Edits of entries that have keys: environment variables, map entries, mounts. For each key the
// last edit counts; keys are in the order of their first edits. The time of an edit does not depend
// on their number, since plugins may send 100,000. A value type, thread-compatible.
template <typename Value>
class KeyedEdits {
 public:
  struct Edit {
    std::string key;
    std::optional<Value> value;  // nullopt: the entry with the key is removed

    friend bool operator==(const Edit&, const Edit&) = default;
  };

  void Set(std::string_view key, Value value) { At(key) = std::move(value); }
  void Remove(std::string_view key) { At(key) = std::nullopt; }

  bool empty() const { return edits_.empty(); }
  // nullptr: there is no edit for the key.
  const Edit* Find(std::string_view key) const {
    const size_t at = IndexOf(key);
    return at == edits_.size() ? nullptr : &edits_[at];
  }
  auto begin() const { return edits_.begin(); }
  auto end() const { return edits_.end(); }

  // Forgets the edits that match, as if they had never been made. False: no edit matches.
  template <typename Matches>
  bool EraseIf(Matches matches) {
    if (std::erase_if(edits_, matches) == 0) return false;
    indices_.clear();
    for (size_t i = 0; edits_.size() > kFew && i < edits_.size(); ++i)
      indices_.emplace(edits_[i].key, i);
    return true;
  }

  // Adds the edits of `later`, which win for the same key.
  void Merge(KeyedEdits&& later) {
    for (Edit& edit : later.edits_)
      At(edit.key) = std::move(edit.value);
  }

  friend bool operator==(const KeyedEdits& a, const KeyedEdits& b) { return a.edits_ == b.edits_; }

 private:
  // Up to this many edits are searched one by one.
  static constexpr size_t kFew = 16;

  // The index of the key's edit; the number of edits if there is none.
  size_t IndexOf(std::string_view key) const {
    if (edits_.size() <= kFew) {
      return static_cast<size_t>(std::ranges::find(edits_, key, &Edit::key) - edits_.begin());
    }
    const auto found = indices_.find(key);
    return found == indices_.end() ? edits_.size() : found->second;
  }
  std::optional<Value>& At(std::string_view key) {
    if (const size_t at = IndexOf(key); at < edits_.size()) return edits_[at].value;
    edits_.push_back({.key = std::string(key), .value = std::nullopt});
    if (edits_.size() > kFew) {
      for (size_t i = indices_.size(); i < edits_.size(); ++i)
        indices_.emplace(edits_[i].key, i);
    }
    return edits_.back().value;
  }

  std::vector<Edit> edits_;
  // The indices of all keys, once there are more than a few.
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> indices_;
};

}  // namespace resmgr
