// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_lookup.h"

#include <utility>

#include <unistd.h>

#include "pkg/audit/comparison.h"

namespace resmgr {
namespace {

bool Differs(const ResourceValues& known, const CgroupValues& actual) {
  return !CompareCgroup(known, actual).empty();
}

// The kernel rounds limits to whole pages.
bool IsLimit(int64_t actual, int64_t known) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return actual == known || actual == known / page * page;
}

}  // namespace

ResourceValues OfOthers(const ValuesOfOthers::Subject& subject, const CgroupValues& actual) {
  ResourceValues found;
  const ResourceValues& known = subject.known;
  // The period of a container without a limit does not matter.
  const bool other_quota = Differs({.cpu_quota = known.cpu_quota}, actual);
  const bool limited = known.cpu_quota.value_or(-1) > 0;
  if (other_quota || (limited && Differs({.cpu_period = known.cpu_period}, actual))) {
    found.cpu_quota = actual.set.cpu_quota;
    found.cpu_period = actual.set.cpu_period;
  }
  const std::optional<int64_t>& memory = actual.set.memory_limit;
  if (subject.memory_limit.value_or(0) > 0 && memory && !IsLimit(*memory, *subject.memory_limit)) {
    found.memory_limit = memory;
    // The kernel and runtimes refuse a limit of memory and swap together that is below the one of
    // memory.
    const std::optional<int64_t>& swap = actual.set.memory_swap_limit;
    if (swap.value_or(-1) >= 0) found.memory_swap_limit = swap;
  }
  return found;
}

CgroupLookup::CgroupLookup(EventLoop& loop, CgroupReader cgroups)
    : CgroupLookup(
          loop,
          [cgroups = std::move(cgroups)](const Subject& subject) {
            const auto values = cgroups.ReadNumbers(subject.cgroup_parent, subject.id.value());
            return values.ok() ? OfOthers(subject, *values) : ResourceValues();
          },
          std::chrono::milliseconds(500)) {}

CgroupLookup::CgroupLookup(EventLoop& loop, ReadOne read, std::chrono::milliseconds patience)
    : looks_(
          loop, "cgroup-lookup", [read = std::move(read)] { return read; }, patience) {}

void CgroupLookup::Look(std::vector<Subject> subjects, std::function<void(Found)> done) {
  looks_.Look(std::move(subjects), std::move(done));
}

}  // namespace resmgr
