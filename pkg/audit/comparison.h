// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/model/resources.h"

namespace resmgr {

// One value of a container that differs from the decided one.
struct Drift {
  enum class Where {
    kCgroup,     // the cgroup has another value: sending the decision again repairs it
    kEffective,  // the cgroup has the decided value, but a cgroup above allows less of it
    kRuntime,    // the runtime's record differs: its next update would apply that
    kAffinity,   // the container inherited the runtime's affinity to fewer CPUs
    kHierarchy,  // the cgroups cannot take the value at all
  };
  Where where = Where::kCgroup;
  std::string value{};  // "cpuset.cpus"
  std::string decided{};
  std::string actual{};  // "" where it is not set
  std::string why{};     // the cause outside of the container, and the remedy; "" if unknown

  friend bool operator==(const Drift&, const Drift&) = default;
};

// "cgroup", "effective", "runtime", "affinity", "hierarchy"
std::string_view ToString(Drift::Where where);
// "cpuset.cpus is 0-3 in its cgroup, not 1-2".
std::string Describe(const Drift& drift);

// Whether sending the decision again may repair it; other drifts stay until an administrator
// removes their cause.
bool CanBeMended(const Drift& drift);

// Whether the container has CPUs or memory nodes that were not decided, and not merely fewer of the
// decided ones: only then may it be on the exclusive CPUs of others.
bool HasOthers(const Drift& drift);

// The differences. Only decided values are compared; a number that the kernel rounds or limits is
// compared after that rounding. A value that could not be read is not a difference, except for CPUs
// and memory nodes, which every cgroup has.
std::vector<Drift> CompareCgroup(const ResourceValues& decided, const CgroupValues& actual);
// Compares with the values that the runtime reports. A value that it does not report is not a
// difference.
std::vector<Drift> CompareReport(const ResourceValues& decided, const ResourceValues& reported);

}  // namespace resmgr
