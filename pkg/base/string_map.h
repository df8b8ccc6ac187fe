// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace resmgr {

// Texts by name, ascending: labels and annotations. All text lies in one piece, because these come
// by the dozen with every container and are hardly ever read; so what one gets are views, which
// hold until the map changes. A value type, thread-compatible.
class StringMap {
 public:
  using value_type = std::pair<std::string_view, std::string_view>;
  class const_iterator;
  using iterator = const_iterator;

  StringMap() = default;
  // Of entries with the same name the last one counts.
  StringMap(std::initializer_list<value_type> entries)
      : StringMap(entries.begin(), entries.end()) {}
  template <typename Iterator>
  StringMap(Iterator begin, Iterator end) {
    for (; begin != end; ++begin)
      Append(begin->first, begin->second);
    Sort();
  }

  void Set(std::string_view name, std::string_view value) {
    Append(name, value);
    Sort();
  }
  // For many at once: after the last one, and before anything is read, comes Sort.
  void Append(std::string_view name, std::string_view value);
  void Sort();

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const_iterator begin() const;
  const_iterator end() const;
  const_iterator find(std::string_view name) const;
  // The first entry whose name is not before this one.
  const_iterator lower_bound(std::string_view name) const;
  bool contains(std::string_view name) const;

  friend bool operator==(const StringMap& a, const StringMap& b);

 private:
  // Where in the text: messages that maps come from are bounded far below 4 GiB.
  struct Entry {
    uint32_t name = 0;
    uint32_t name_size = 0;
    uint32_t value_size = 0;  // the value follows the name
  };
  std::string_view Name(const Entry& entry) const {
    return {text_.data() + entry.name, entry.name_size};
  }
  std::string_view Value(const Entry& entry) const {
    return {text_.data() + entry.name + entry.name_size, entry.value_size};
  }

  std::string text_;
  std::vector<Entry> entries_;
};

class StringMap::const_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = StringMap::value_type;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  // Keeps the entry that is pointed to.
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

  value_type operator*() const {
    const Entry& entry = map_->entries_[at_];
    return {map_->Name(entry), map_->Value(entry)};
  }
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
  return {this, entries_.size()};
}
inline StringMap::const_iterator StringMap::find(std::string_view name) const {
  const const_iterator found = lower_bound(name);
  return found == end() || found->first != name ? end() : found;
}
inline bool StringMap::contains(std::string_view name) const {
  return find(name) != end();
}

}  // namespace resmgr
