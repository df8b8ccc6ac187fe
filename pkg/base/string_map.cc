// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/string_map.h"

#include <algorithm>

namespace resmgr {
namespace {

// What a kubelet's container brings fits in without growing.
constexpr size_t kUsualText = 512;
constexpr size_t kUsualEntries = 8;

}  // namespace

void StringMap::Append(std::string_view name, std::string_view value) {
  if (entries_.empty()) {
    text_.reserve(kUsualText);
    entries_.reserve(kUsualEntries);
  }
  entries_.push_back({.name = static_cast<uint32_t>(text_.size()),
                      .name_size = static_cast<uint32_t>(name.size()),
                      .value_size = static_cast<uint32_t>(value.size())});
  text_ += name;
  text_ += value;
}

void StringMap::Sort() {
  const auto not_before = [this](const Entry& a, const Entry& b) { return Name(a) >= Name(b); };
  if (std::ranges::adjacent_find(entries_, not_before) == entries_.end()) return;
  const auto name = [this](const Entry& entry) { return Name(entry); };
  std::ranges::stable_sort(entries_, {}, name);
  // From the back, so that of equal ones the last one stays.
  const auto former =
      std::unique(entries_.rbegin(), entries_.rend(),
                  [&name](const Entry& a, const Entry& b) { return name(a) == name(b); });
  entries_.erase(entries_.begin(), former.base());
}

StringMap::const_iterator StringMap::lower_bound(std::string_view name) const {
  const auto found = std::ranges::lower_bound(entries_, name, {},
                                              [this](const Entry& entry) { return Name(entry); });
  return {this, static_cast<size_t>(found - entries_.begin())};
}

bool operator==(const StringMap& a, const StringMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace resmgr
