// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace resmgr {

// Texts by name, ascending: labels and annotations. The whole map is one piece of memory, because
// every container has dozens of texts that are hardly ever read. So access gives views, which are
// valid until the map changes. A value type, thread-compatible.
class StringMap {
 public:
  using value_type = std::pair<std::string_view, std::string_view>;
  class const_iterator;
  using iterator = const_iterator;

  StringMap() = default;
  // If entries have the same name, the last one counts.
  StringMap(std::initializer_list<value_type> entries)
      : StringMap(entries.begin(), entries.end()) {}
  template <typename Iterator>
  StringMap(Iterator begin, Iterator end) {
    std::vector<value_type> entries;
    for (; begin != end; ++begin)
      entries.emplace_back(begin->first, begin->second);
    Build(entries);
  }
  // As above, but sorts the given list in place of a copy.
  explicit StringMap(std::span<value_type> entries) { Build(entries); }

  // Rebuilds the map; to set many entries at once, use a constructor.
  void Set(std::string_view name, std::string_view value);

  bool empty() const { return bytes_.empty(); }
  // The texts follow the entries, so the offset of the first text gives the number of entries.
  size_t size() const { return empty() ? 0 : EntryAt(0).name / sizeof(Entry); }
  const_iterator begin() const;
  const_iterator end() const;
  const_iterator find(std::string_view name) const;
  // The first entry whose name is not less than this one.
  const_iterator lower_bound(std::string_view name) const;
  bool contains(std::string_view name) const;

  friend bool operator==(const StringMap& a, const StringMap& b) = default;

 private:
  // 32-bit offsets are enough: messages that maps come from are bounded far below 4 GiB.
  struct Entry {
    uint32_t name = 0;
    uint32_t name_size = 0;
    uint32_t value_size = 0;  // the value follows the name
  };
  void Build(std::span<value_type> entries);
  Entry EntryAt(size_t index) const {
    Entry entry;
    std::memcpy(&entry, bytes_.data() + index * sizeof entry, sizeof entry);
    return entry;
  }
  value_type At(size_t index) const {
    const Entry entry = EntryAt(index);
    const char* const name = bytes_.data() + entry.name;
    return {{name, entry.name_size}, {name + entry.name_size, entry.value_size}};
  }

  std::string bytes_;  // the entries, then their texts
};

class StringMap::const_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = StringMap::value_type;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  // Holds the entry that operator-> points to.
  class Arrow {
   public:
    explicit Arrow(value_type entry) : entry_(entry) {}
    const value_type* operator->() const { return &entry_; }

   private:
    value_type entry_;
  };
  using pointer = Arrow;

  const_iterator() = default;
  const_iterator(const StringMap* map, size_t at) : map_(map), at_(at) {}

  value_type operator*() const { return map_->At(at_); }
  Arrow operator->() const { return Arrow(**this); }
  const_iterator& operator++() {
    ++at_;
    return *this;
  }
  const_iterator operator++(int) { return {map_, at_++}; }
  friend bool operator==(const const_iterator&, const const_iterator&) = default;

 private:
  const StringMap* map_ = nullptr;
  size_t at_ = 0;
};

inline StringMap::const_iterator StringMap::begin() const {
  return {this, 0};
}
inline StringMap::const_iterator StringMap::end() const {
  return {this, size()};
}
inline StringMap::const_iterator StringMap::find(std::string_view name) const {
  const const_iterator found = lower_bound(name);
  return found == end() || found->first != name ? end() : found;
}
inline bool StringMap::contains(std::string_view name) const {
  return find(name) != end();
}

}  // namespace resmgr
