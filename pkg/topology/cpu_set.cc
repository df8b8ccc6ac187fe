// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/cpu_set.h"

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
std::string IdSet<Tag>::ToString() const {
  std::string list;
  const IdSet missing = Range(0, kMaxId) - *this;
  for (int first = First(); first != -1;) {
    const int gap = missing.NextAfter(first);
    const int last = gap == -1 ? kMaxId : gap - 1;
    if (!list.empty()) list += ',';
    list += std::to_string(first);
    if (last > first) list.append(1, '-').append(std::to_string(last));
    first = NextAfter(last);
  }
  return list;
}

template class IdSet<struct CpuTag>;
template class IdSet<struct NodeTag>;
template class IdSet<struct CoreTag>;

}  // namespace resmgr
