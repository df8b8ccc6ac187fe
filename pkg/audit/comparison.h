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
    kCgroup,     // the cgroup has another value: sending the decision again mends it
    kEffective,  // the cgroup has the decided value, and a cgroup above leaves less of it
    kRuntime,    // the runtime's own notes differ: its next update would put these in force
    kAffinity,   // the runtime's processes may use fewer CPUs, which the container's inherited
    kHierarchy,  // the cgroups cannot take the value at all
  };
  Where where = Where::kCgroup;
  std::string value{};  // "cpuset.cpus"
  std::string decided{};
  std::string actual{};  // "" where it is not set
  std::string why{};  // the cause outside of the container, and what to do; "" where none is known

  friend bool operator==(const Drift&, const Drift&) = default;
};

// "cgroup", "effective", "runtime", "affinity", "hierarchy"
std::string_view ToString(Drift::Where where);
// "cpuset.cpus is 0-3 in its cgroup, not 1-2".
std::string Describe(const Drift& drift);

// Whether sending the decision again may mend it; other drifts stay until an administrator removes
// their cause.
bool CanBeMended(const Drift& drift);

// Whether CPUs or memory nodes are in force that were not decided, and not only fewer of the
// decided ones: then the container may be on the exclusive CPUs of others.
bool HasOthers(const Drift& drift);

// The differences. Only decided values are compared; a number that the kernel rounds or limits is
// compared after that rounding. A value that could not be read is no difference, but for CPUs and
// memory nodes, which every cgroup has.
std::vector<Drift> CompareCgroup(const ResourceValues& decided, const CgroupValues& actual);
// Compares with the values that the runtime reports. A value that it does not report is not a
// difference.
std::vector<Drift> CompareReport(const ResourceValues& decided, const ResourceValues& reported);

}  // namespace resmgr
