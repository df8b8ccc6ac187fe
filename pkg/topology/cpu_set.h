// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// A set of small ids in fixed words: no allocation, set algebra in nanoseconds. A value type,
// thread-compatible. The Tag keeps CPUs and NUMA nodes apart. Ids run from 0 to kMaxId; a machine
// with higher ones is refused when it is loaded.
template <typename Tag>
class IdSet {
 public:
  static constexpr int kBits = 1024;
  static constexpr int kMaxId = kBits - 1;

  constexpr IdSet() = default;
  constexpr IdSet(std::initializer_list<int> ids) {
    for (const int id : ids)
      Add(id);
  }
  // Ids first to last, both included.
  static constexpr IdSet Range(int first, int last) {
    IdSet set;
    for (int id = first; id <= last; ++id)
      set.Add(id);
    return set;
  }
  // The kernel's list format: "0-3,8,10-11", white space around items allowed; "" is the empty set.
  // Strides ("0-10:2") are not part of it. InvalidArgument names the offending item.
  static StatusOr<IdSet> Parse(std::string_view list);

  constexpr void Add(int id) { words_[Word(id)] |= Bit(id); }
  constexpr void Remove(int id) { words_[Word(id)] &= ~Bit(id); }
  constexpr bool Contains(int id) const {
    return id >= 0 && id <= kMaxId && (words_[Word(id)] & Bit(id)) != 0;
  }
  constexpr bool empty() const {
    for (const uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  constexpr int size() const {
    int count = 0;
    for (const uint64_t word : words_)
      count += std::popcount(word);
    return count;
  }
  // The lowest id, -1 when empty.
  constexpr int First() const { return NextAfter(-1); }
  // The highest id, -1 when empty.
  constexpr int Last() const {
    for (size_t i = kWords; i > 0; --i) {
      const uint64_t word = words_[i - 1];
      if (word != 0) return static_cast<int>(i) * 64 - 1 - std::countl_zero(word);
    }
    return -1;
  }
  // The lowest id above `id`, -1 when there is none.
  constexpr int NextAfter(int id) const {
    const int start = id + 1;
    if (start > kMaxId) return -1;
    size_t index = Word(start);
    uint64_t word = words_[index] & (~uint64_t{0} << (start % 64));
    while (word == 0) {
      if (++index == kWords) return -1;
      word = words_[index];
    }
    return static_cast<int>(index) * 64 + std::countr_zero(word);
  }
  constexpr bool Intersects(const IdSet& other) const {
    for (size_t i = 0; i < kWords; ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  constexpr bool IsSubsetOf(const IdSet& other) const {
    for (size_t i = 0; i < kWords; ++i) {
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    }
    return true;
  }
  constexpr int CountCommon(const IdSet& other) const {
    int count = 0;
    for (size_t i = 0; i < kWords; ++i)
      count += std::popcount(words_[i] & other.words_[i]);
    return count;
  }

  constexpr IdSet& operator|=(const IdSet& other) {
    for (size_t i = 0; i < kWords; ++i)
      words_[i] |= other.words_[i];
    return *this;
  }
  constexpr IdSet& operator&=(const IdSet& other) {
    for (size_t i = 0; i < kWords; ++i)
      words_[i] &= other.words_[i];
    return *this;
  }
  constexpr IdSet& operator-=(const IdSet& other) {
    for (size_t i = 0; i < kWords; ++i)
      words_[i] &= ~other.words_[i];
    return *this;
  }
  friend constexpr IdSet operator|(IdSet a, const IdSet& b) { return a |= b; }
  friend constexpr IdSet operator&(IdSet a, const IdSet& b) { return a &= b; }
  friend constexpr IdSet operator-(IdSet a, const IdSet& b) { return a -= b; }
  friend constexpr bool operator==(const IdSet&, const IdSet&) = default;

  // The kernel's list format, what cpuset files take: "0-3,8".
  std::string ToString() const;

  class Iterator {
   public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator(const IdSet* set, int id) : set_(set), id_(id) {}
    constexpr int operator*() const { return id_; }
    constexpr Iterator& operator++() {
      id_ = set_->NextAfter(id_);
      return *this;
    }
    constexpr bool operator==(const Iterator& other) const { return id_ == other.id_; }

   private:
    const IdSet* set_;
    int id_;
  };
  // Ascending order.
  constexpr Iterator begin() const { return {this, First()}; }
  constexpr Iterator end() const { return {this, -1}; }

 private:
  static constexpr size_t kWords = kBits / 64;
  static constexpr size_t Word(int id) { return static_cast<size_t>(id) / 64; }
  static constexpr uint64_t Bit(int id) { return uint64_t{1} << (id % 64); }

  std::array<uint64_t, kWords> words_{};
};

// Logical CPUs by their operating-system number.
using CpuSet = IdSet<struct CpuTag>;
// NUMA nodes by their operating-system number.
using NodeSet = IdSet<struct NodeTag>;
// Cores by their index in Machine::cores().
using CoreSet = IdSet<struct CoreTag>;

extern template class IdSet<struct CpuTag>;
extern template class IdSet<struct NodeTag>;
extern template class IdSet<struct CoreTag>;

}  // namespace resmgr
