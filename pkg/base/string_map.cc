// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/string_map.h"

#include <algorithm>

namespace resmgr {
namespace {

// Sorts by name and keeps each name once. Returns how many entries are left, at the front.
size_t PutIntoOrder(std::span<StringMap::value_type> entries) {
  const auto name = &StringMap::value_type::first;
  if (std::ranges::adjacent_find(entries, std::ranges::greater_equal(), name) == entries.end()) {
    return entries.size();
  }
  std::ranges::stable_sort(entries, {}, name);
  // If entries have equal names, the last one stays.
  size_t count = 0;
  for (const StringMap::value_type& entry : entries) {
    if (count > 0 && entries[count - 1].first == entry.first) --count;
    entries[count++] = entry;
  }
  return count;
}

}  // namespace

void StringMap::Build(std::span<value_type> entries) {
  entries = entries.first(PutIntoOrder(entries));
  size_t size = entries.size() * sizeof(Entry);
  for (const auto& [name, value] : entries)
    size += name.size() + value.size();
  std::string bytes(size, '\0');
  char* place = bytes.data();
  char* text = place + entries.size() * sizeof(Entry);
  for (const auto& [name, value] : entries) {
    const Entry entry{.name = static_cast<uint32_t>(text - bytes.data()),
                      .name_size = static_cast<uint32_t>(name.size()),
                      .value_size = static_cast<uint32_t>(value.size())};
    std::memcpy(place, &entry, sizeof entry);
    place += sizeof entry;
    text += name.copy(text, name.size());
    text += value.copy(text, value.size());
  }
  bytes_ = std::move(bytes);
}

void StringMap::Set(std::string_view name, std::string_view value) {
  std::vector<value_type> entries(begin(), end());
  entries.emplace_back(name, value);
  Build(entries);
}

StringMap::const_iterator StringMap::lower_bound(std::string_view name) const {
  size_t low = 0;
  for (size_t high = size(); low < high;) {
    const size_t middle = low + (high - low) / 2;
    if (At(middle).first < name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return {this, low};
}

}  // namespace resmgr
