// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "pkg/base/status.h"
#include "pkg/base/units.h"
#include "pkg/config/cpu_constraint.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The CPUs that policies work with.
struct PolicyCpus {
  CpuSet available;  // never empty; online
  CpuSet reserved;   // part of `available`; may be empty
  // The part of the reserved CPUs that exceeds the reserved quantity, which is rounded up to whole
  // CPUs: the scheduler counts this part as allocatable to pods.
  MilliCpu unreserved{};

  friend bool operator==(const PolicyCpus&, const PolicyCpus&) = default;
};

struct ConstraintOptions {
  // Picks `count` CPUs of `from` if a constraint gives only a number; a function of pkg/allocator.
  std::function<StatusOr<CpuSet>(const CpuSet& from, int count)> pick;
  // The mount point of the cgroup file systems.
  std::string cgroup_mount = "/sys/fs/cgroup";
  // CPUs that went offline since the machine was read.
  CpuSet offline{};
};

// The constraints of the configuration on this machine:
//   available  as a set or a cgroup: these CPUs, as far as they are online; as a quantity: so many
//              CPUs (rounded down) picked from those that this process may use; as all but some:
//              those that this process may use without them; not set: all that it may use
//   reserved   as a set or a cgroup: these CPUs, which must all be available; as a quantity: so
//              many CPUs (rounded up) picked from the available ones that are not isolated, in an
//              order that does not depend on what is available, so that fewer of these replace
//              only the reserved CPUs that are gone; as all but some: those without them; not set:
//              none
// The CPUs that went offline since are left out of all that. The other available CPUs stay what
// they are; for a quantity, others take the place of those that are missing, where there are more.
// The other reserved CPUs stay what they are, too, and others take their place where none is left.
// A cgroup's CPUs are its cpuset.cpus.effective or cpuset.cpus; `/DIR` is tried as a path of its
// own, and any DIR below the cgroup mount and its cpuset controller. Reads files for cgroups only.
// InvalidArgument, with the constraint's origin and the CPUs or numbers that do not fit, when the
// machine cannot satisfy them or there is no such cgroup.
StatusOr<PolicyCpus> ResolveCpuConstraints(const Machine& machine,
                                           const std::optional<CpuConstraint>& available,
                                           const std::optional<CpuConstraint>& reserved,
                                           const ConstraintOptions& options);

}  // namespace resmgr
