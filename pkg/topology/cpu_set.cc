// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpu_set.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <type_traits>

#include <fmt/format.h>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

struct IdRange {
  int first = 0;
  int last = 0;
};

StatusOr<int> ParseId(std::string_view text, std::string_view item, int max_id) {
  const std::optional<uint64_t> id = ParseUint(text);
  if (!id) {
    return InvalidArgument("'{}' is neither a number nor a range such as 0-3", Printable(item, 40));
  }
  if (*id > static_cast<uint64_t>(max_id)) {
    return InvalidArgument("'{}' is above {}, the highest id that is supported",
                           Printable(item, 40), max_id);
  }
  return static_cast<int>(*id);
}

StatusOr<IdRange> ParseItem(std::string_view item, int max_id) {
  const size_t dash = item.find('-');
  IdRange range;
  RESMGR_ASSIGN_OR_RETURN(range.first, ParseId(item.substr(0, dash), item, max_id));
  if (dash == std::string_view::npos) {
    range.last = range.first;
    return range;
  }
  RESMGR_ASSIGN_OR_RETURN(range.last, ParseId(item.substr(dash + 1), item, max_id));
  if (range.last < range.first) {
    return InvalidArgument("'{}' is a range that ends below its start", item);
  }
  return range;
}

}  // namespace

template <typename Tag>
StatusOr<IdSet<Tag>> IdSet<Tag>::Parse(std::string_view list) {
  IdSet set;
  if (Trim(list).empty()) return set;
  for (const std::string_view item : Split(list, ',')) {
    const StatusOr<IdRange> range = ParseItem(Trim(item), kMaxId);
    if (!range.ok()) {
      return Annotate(range.status(), fmt::format("list \"{}\"", Printable(Trim(list), 80)));
    }
    for (int id = range->first; id <= range->last; ++id)
      set.Add(id);
  }
  return set;
}

template <typename Tag>
int IdSet<Tag>::Last() const {
  for (size_t i = words(); i > 0; --i) {
    const uint64_t word = WordAt(i - 1);
    if (word != 0) return static_cast<int>(i) * 64 - 1 - std::countl_zero(word);
  }
  return -1;
}

template <typename Tag>
std::string IdSet<Tag>::ToString() const {
  // Room for the longest list, which has a range of two ids for every three ids.
  static_assert(kMaxId < 10'000);
  constexpr size_t kIdLength = sizeof("9998-9999");
  char on_stack[(kInlineBits / 3 + 1) * kIdLength];
  const size_t length = (words() * 64 / 3 + 1) * kIdLength;
  const std::unique_ptr<char[]> on_heap(
      length > sizeof(on_stack) ? std::make_unique_for_overwrite<char[]>(length) : nullptr);
  char* const text = on_heap ? on_heap.get() : on_stack;
  char* const end = text + length;
  char* at = text;
  for (int first = First(); first != -1;) {
    const int gap = NextOf(first, ~uint64_t{0});
    const int last = gap == -1 ? static_cast<int>(words()) * 64 - 1 : gap - 1;
    if (at != text) *at++ = ',';
    at = std::to_chars(at, end, first).ptr;
    if (last > first) {
      *at++ = '-';
      at = std::to_chars(at, end, last).ptr;
    }
    first = NextAfter(last);
  }
  return {text, at};
}

// On machines of up to 1024 CPUs all sets with far words have the same number of them, for which
// the loop is unrolled.
template <typename Tag>
template <typename Loop>
auto IdSet<Tag>::OverFar(size_t words, const Loop& loop) {
  if (words == kInlineFarWords) return loop(std::integral_constant<size_t, kInlineFarWords>());
  return loop(words);
}

template <typename Tag>
void IdSet<Tag>::DeleteHeap() {
  delete[] heap_far_;
}

// Makes at least `wanted` far words valid; new ones are zero.
template <typename Tag>
void IdSet<Tag>::Widen(size_t wanted) {
  const size_t before = far_words();
  if (before >= wanted) return;
  if (wanted <= kInlineFarWords) {
    std::fill_n(inline_far_, kInlineFarWords, 0);
    reach_ = Reach::kInline;
    return;
  }
  auto* const words = new uint64_t[kFarWords]();
  // Copied before the pointer overwrites the inline words.
  if (before > 0) std::copy_n(inline_far_, before, words);
  heap_far_ = words;
  reach_ = Reach::kHeap;
}

template <typename Tag>
void IdSet<Tag>::AddFar(int id) {
  const size_t word = Word(id - kNearBits);
  Widen(word + 1);
  far()[word] |= Bit(id);
}

template <typename Tag>
void IdSet<Tag>::RemoveFar(int id) {
  const size_t word = Word(id - kNearBits);
  if (word < far_words()) far()[word] &= ~Bit(id);
}

template <typename Tag>
void IdSet<Tag>::AddFar(const IdSet& other) {
  Widen(other.far_words());
  uint64_t* const words = far();
  const uint64_t* const others = other.far();
  OverFar(other.far_words(), [&](auto count) {
    for (size_t i = 0; i < count; ++i)
      words[i] |= others[i];
  });
}

// The reach of this set is set already, but its far words are not initialized.
template <typename Tag>
void IdSet<Tag>::CopyFar(const IdSet& other) {
  if (reach_ == Reach::kHeap) heap_far_ = new uint64_t[kFarWords];
  uint64_t* const words = far();
  const uint64_t* const others = other.far();
  OverFar(far_words(), [&](auto count) { std::copy_n(others, size_t{count}, words); });
}

// As CopyFar, but takes words on the heap over: the other set is left with its near words alone.
template <typename Tag>
void IdSet<Tag>::TakeFar(IdSet& other) {
  if (reach_ == Reach::kHeap) {
    heap_far_ = other.heap_far_;
    other.reach_ = Reach::kNear;
  } else {
    std::copy_n(other.inline_far_, kInlineFarWords, inline_far_);
  }
}

template <typename Tag>
void IdSet<Tag>::KeepFar(const IdSet& other) {
  if (!other.wide()) {
    FreeHeap();
    reach_ = Reach::kNear;
    return;
  }
  const size_t common = std::min(far_words(), other.far_words());
  uint64_t* const words = far();
  const uint64_t* const others = other.far();
  OverFar(common, [&](auto count) {
    for (size_t i = 0; i < count; ++i)
      words[i] &= others[i];
  });
  std::fill(words + common, words + far_words(), 0);
}

template <typename Tag>
void IdSet<Tag>::RemoveFar(const IdSet& other) {
  uint64_t* const words = far();
  const uint64_t* const others = other.far();
  OverFar(std::min(far_words(), other.far_words()), [&](auto common) {
    for (size_t i = 0; i < common; ++i)
      words[i] &= ~others[i];
  });
}

template <typename Tag>
int IdSet<Tag>::FarSize() const {
  int count = 0;
  const uint64_t* const words = far();
  for (size_t i = 0; i < far_words(); ++i)
    count += std::popcount(words[i]);
  return count;
}

template <typename Tag>
int IdSet<Tag>::FarCommon(const IdSet& other) const {
  const size_t common = std::min(far_words(), other.far_words());
  const uint64_t* const words = far();
  const uint64_t* const others = other.far();
  int count = 0;
  for (size_t i = 0; i < common; ++i)
    count += std::popcount(words[i] & others[i]);
  return count;
}

template <typename Tag>
bool IdSet<Tag>::AnyFarFrom(size_t word) const {
  uint64_t any = 0;
  const uint64_t* const words = far();
  for (size_t i = word; i < far_words(); ++i)
    any |= words[i];
  return any != 0;
}

template <typename Tag>
template <typename Operation>
bool IdSet<Tag>::AnyOfCommonFar(const IdSet& other, const Operation& operation) const {
  const uint64_t* const words = far();
  const uint64_t* const others = other.far();
  return OverFar(std::min(far_words(), other.far_words()), [&](auto common) {
    uint64_t any = 0;
    for (size_t i = 0; i < common; ++i)
      any |= operation(words[i], others[i]);
    return any != 0;
  });
}

template <typename Tag>
bool IdSet<Tag>::FarIntersects(const IdSet& other) const {
  return AnyOfCommonFar(other, [](uint64_t mine, uint64_t its) { return mine & its; });
}

template <typename Tag>
bool IdSet<Tag>::FarIsSubsetOf(const IdSet& other) const {
  return !AnyOfCommonFar(other, [](uint64_t mine, uint64_t its) { return mine & ~its; }) &&
         !AnyFarFrom(other.far_words());
}

template <typename Tag>
bool IdSet<Tag>::SameFar(const IdSet& other) const {
  if (AnyOfCommonFar(other, [](uint64_t mine, uint64_t its) { return mine ^ its; })) return false;
  return reach_ == other.reach_ ||
         (!AnyFarFrom(other.far_words()) && !other.AnyFarFrom(far_words()));
}

template class IdSet<struct CpuTag>;
template class IdSet<struct NodeTag>;
template class IdSet<struct CoreTag>;

}  // namespace resmgr
