// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "pkg/base/status.h"

namespace resmgr {

// A set of small ids, with set algebra in nanoseconds. A value type, thread-compatible. The Tag
// keeps CPUs and NUMA nodes apart. Ids run from 0 to kMaxId, the most that Linux can be built for
// (NR_CPUS up to 8192); a machine with higher ids is refused when it is loaded.
//
// Most machines have fewer CPUs than the near words hold. The far words are used, and even
// initialized, only once an id in their range was added: containers' records and decisions have
// many sets, which are usually not in the cache. Ids up to 1023 (319 for NUMA nodes) need no
// allocation; only a set with a higher id keeps all its far words on the heap. A plain array with a
// std::vector for higher ids would be 200 lines shorter, and was measured with `decision-bench
// resync`: with 256 bits in the array 4 to 23 % more CPU time on a machine of 512 CPUs, with 512
// bits 4 % less to 17 % more there and 3 % less to 18 % more with 1024 CPUs.
template <typename Tag>
class IdSet {
 public:
  static constexpr int kBits = 8192;
  static constexpr int kMaxId = kBits - 1;

  // Not defaulted: `IdSet{}` would initialize the far words too.
  IdSet() : reach_(Reach::kNear) {}
  IdSet(std::initializer_list<int> ids) : IdSet() {
    for (const int id : ids)
      Add(id);
  }
  IdSet(const IdSet& other) : near_(other.near_), reach_(other.reach_) {
    if (wide()) CopyFar(other);
  }
  IdSet(IdSet&& other) noexcept : near_(other.near_), reach_(other.reach_) {
    if (wide()) TakeFar(other);
  }
  IdSet& operator=(const IdSet& other) {
    if (this == &other) return *this;
    FreeHeap();
    near_ = other.near_;
    reach_ = other.reach_;
    if (wide()) CopyFar(other);
    return *this;
  }
  IdSet& operator=(IdSet&& other) noexcept {
    if (this == &other) return *this;
    FreeHeap();
    near_ = other.near_;
    reach_ = other.reach_;
    if (wide()) TakeFar(other);
    return *this;
  }
  ~IdSet() { FreeHeap(); }

  // Ids first to last, both included.
  static IdSet Range(int first, int last) {
    IdSet set;
    for (int id = first; id <= last; ++id)
      set.Add(id);
    return set;
  }
  // The kernel's list format: "0-3,8,10-11", white space around items allowed; "" is the empty set.
  // Strides ("0-10:2") are not part of it. InvalidArgument names the offending item.
  static StatusOr<IdSet> Parse(std::string_view list);

  void Add(int id) {
    if (id < kNearBits) {
      near_[Word(id)] |= Bit(id);
    } else {
      AddFar(id);
    }
  }
  void Remove(int id) {
    if (id < kNearBits) {
      near_[Word(id)] &= ~Bit(id);
    } else if (wide()) {
      RemoveFar(id);
    }
  }
  bool Contains(int id) const {
    if (id < 0 || id > kMaxId) return false;
    return (WordAt(Word(id)) & Bit(id)) != 0;
  }
  bool empty() const {
    uint64_t any = 0;
    for (const uint64_t word : near_)
      any |= word;
    return any == 0 && !(wide() && AnyFar());
  }
  int size() const {
    int count = 0;
    for (const uint64_t word : near_)
      count += std::popcount(word);
    return wide() ? count + FarSize() : count;
  }
  // The lowest id, -1 when empty.
  int First() const { return NextAfter(-1); }
  // The highest id, -1 when empty.
  int Last() const;
  // The lowest id above `id`, -1 when there is none.
  int NextAfter(int id) const { return NextOf(id, 0); }
  bool Intersects(const IdSet& other) const {
    uint64_t common = 0;
    for (size_t i = 0; i < kNearWords; ++i)
      common |= near_[i] & other.near_[i];
    return common != 0 || (wide() && other.wide() && FarIntersects(other));
  }
  bool IsSubsetOf(const IdSet& other) const {
    uint64_t missing = 0;
    for (size_t i = 0; i < kNearWords; ++i)
      missing |= near_[i] & ~other.near_[i];
    return missing == 0 && !(wide() && !FarIsSubsetOf(other));
  }
  int CountCommon(const IdSet& other) const {
    int count = 0;
    for (size_t i = 0; i < kNearWords; ++i)
      count += std::popcount(near_[i] & other.near_[i]);
    return wide() ? count + FarCommon(other) : count;
  }

  IdSet& operator|=(const IdSet& other) {
    for (size_t i = 0; i < kNearWords; ++i)
      near_[i] |= other.near_[i];
    if (other.wide()) AddFar(other);
    return *this;
  }
  IdSet& operator&=(const IdSet& other) {
    for (size_t i = 0; i < kNearWords; ++i)
      near_[i] &= other.near_[i];
    if (wide()) KeepFar(other);
    return *this;
  }
  IdSet& operator-=(const IdSet& other) {
    for (size_t i = 0; i < kNearWords; ++i)
      near_[i] &= ~other.near_[i];
    if (wide() && other.wide()) RemoveFar(other);
    return *this;
  }
  friend IdSet operator|(IdSet a, const IdSet& b) { return a |= b; }
  friend IdSet operator&(IdSet a, const IdSet& b) { return a &= b; }
  friend IdSet operator-(IdSet a, const IdSet& b) { return a -= b; }
  friend bool operator==(const IdSet& a, const IdSet& b) {
    return a.near_ == b.near_ && (!(a.wide() || b.wide()) || a.SameFar(b));
  }

  // The kernel's list format, as in cpuset files: "0-3,8".
  std::string ToString() const;

  class Iterator {
   public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    Iterator(const IdSet* set, int id) : set_(set), id_(id) {}
    int operator*() const { return id_; }
    Iterator& operator++() {
      id_ = set_->NextAfter(id_);
      return *this;
    }
    bool operator==(const Iterator& other) const { return id_ == other.id_; }

   private:
    const IdSet* set_;
    int id_;
  };
  // Ascending order.
  Iterator begin() const { return {this, First()}; }
  Iterator end() const { return {this, -1}; }

 private:
  static constexpr int kNearBits = 256;
  // No machine has more than 320 NUMA nodes, whose one far word takes no more room than the
  // pointer.
  static constexpr int kInlineBits = std::is_same_v<Tag, struct NodeTag> ? 320 : 1024;
  static constexpr size_t kNearWords = kNearBits / 64;
  static constexpr size_t kInlineFarWords = (kInlineBits - kNearBits) / 64;
  static constexpr size_t kFarWords = (kBits - kNearBits) / 64;

  // The words that are in use.
  enum class Reach : uint8_t { kNear, kInline, kHeap };

  static constexpr size_t Word(int id) { return static_cast<size_t>(id) / 64; }
  static constexpr uint64_t Bit(int id) { return uint64_t{1} << (id % 64); }

  bool wide() const { return reach_ != Reach::kNear; }
  size_t far_words() const {
    if (reach_ == Reach::kNear) return 0;
    return reach_ == Reach::kInline ? kInlineFarWords : kFarWords;
  }
  // The far words that are in use: far_words() of them.
  const uint64_t* far() const { return reach_ == Reach::kHeap ? heap_far_ : inline_far_; }
  uint64_t* far() { return reach_ == Reach::kHeap ? heap_far_ : inline_far_; }

  size_t words() const { return kNearWords + far_words(); }
  uint64_t WordAt(size_t index) const {
    if (index < kNearWords) return near_[index];
    return index - kNearWords < far_words() ? far()[index - kNearWords] : 0;
  }
  // The lowest id above `id` whose bit differs from the corresponding bit of `passed`, -1 if there
  // is none. All bits of `passed` are equal.
  int NextOf(int id, uint64_t passed) const {
    size_t index = Word(id + 1);
    if (index >= words()) return -1;
    uint64_t word = (WordAt(index) ^ passed) & (~uint64_t{0} << ((id + 1) % 64));
    while (word == 0) {
      if (++index == words()) return -1;
      word = WordAt(index) ^ passed;
    }
    return static_cast<int>(index) * 64 + std::countr_zero(word);
  }

  // Frees the words beyond the near ones, which only large machines have.
  void FreeHeap() {
    if (reach_ == Reach::kHeap) DeleteHeap();
  }
  void DeleteHeap();
  void Widen(size_t far_words);
  void AddFar(int id);
  void RemoveFar(int id);
  void AddFar(const IdSet& other);
  void CopyFar(const IdSet& other);
  void TakeFar(IdSet& other);
  void KeepFar(const IdSet& other);
  void RemoveFar(const IdSet& other);
  int FarSize() const;
  int FarCommon(const IdSet& other) const;
  bool AnyFar() const { return AnyFarFrom(0); }
  bool AnyFarFrom(size_t word) const;
  // Calls a loop with its number of words, as a compile-time constant if it is the inline number.
  template <typename Loop>
  static auto OverFar(size_t words, const Loop& loop);
  // Whether the operation yields a bit for any far word that is in use in both sets.
  template <typename Operation>
  bool AnyOfCommonFar(const IdSet& other, const Operation& operation) const;
  bool FarIntersects(const IdSet& other) const;
  bool FarIsSubsetOf(const IdSet& other) const;
  bool SameFar(const IdSet& other) const;

  std::array<uint64_t, kNearWords> near_{};
  Reach reach_;
  // The words behind the near ones, initialized only as far as they are in use.
  union {
    uint64_t inline_far_[kInlineFarWords];
    uint64_t* heap_far_;  // owned
  };
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
