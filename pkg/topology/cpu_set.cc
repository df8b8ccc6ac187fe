// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpu_set.h"

#include <charconv>
#include <iterator>

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
  // The longest list names two of every three ids.
  static_assert(kMaxId < 10'000);
  char text[(kBits / 3 + 1) * sizeof("9998-9999")];
  char* const end = std::end(text);
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

template <typename Tag>
void IdSet<Tag>::AddFar(int id) {
  if (!wide_) far_.fill(0);
  wide_ = true;
  far_[Word(id - kNearBits)] |= Bit(id);
}

template <typename Tag>
void IdSet<Tag>::AddFar(const IdSet& other) {
  if (!wide_) far_.fill(0);
  wide_ = true;
  for (size_t i = 0; i < kFarWords; ++i)
    far_[i] |= other.far_[i];
}

template <typename Tag>
void IdSet<Tag>::CopyFar(const IdSet& other) {
  far_ = other.far_;
}

template <typename Tag>
void IdSet<Tag>::KeepFar(const IdSet& other) {
  wide_ = other.wide_;
  if (!wide_) return;
  for (size_t i = 0; i < kFarWords; ++i)
    far_[i] &= other.far_[i];
}

template <typename Tag>
void IdSet<Tag>::RemoveFar(const IdSet& other) {
  for (size_t i = 0; i < kFarWords; ++i)
    far_[i] &= ~other.far_[i];
}

template <typename Tag>
int IdSet<Tag>::FarSize() const {
  int count = 0;
  for (const uint64_t word : far_)
    count += std::popcount(word);
  return count;
}

template <typename Tag>
int IdSet<Tag>::FarCommon(const IdSet& other) const {
  if (!other.wide_) return 0;
  int count = 0;
  for (size_t i = 0; i < kFarWords; ++i)
    count += std::popcount(far_[i] & other.far_[i]);
  return count;
}

template <typename Tag>
bool IdSet<Tag>::SameFar(const IdSet& other) const {
  if (wide_ && other.wide_) return far_ == other.far_;
  return (wide_ ? *this : other).FarSize() == 0;
}

template class IdSet<struct CpuTag>;
template class IdSet<struct NodeTag>;
template class IdSet<struct CoreTag>;

}  // namespace resmgr
