// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "pkg/topology/cpuset_limits.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The only door to hwloc: each call loads one topology and turns it into the parts of a machine.
// Nothing of hwloc outlives the call. I/O devices, small caches and hwloc's own groups are left
// out, so a load takes a few milliseconds. An explicit description beats hwloc's environment
// variables; they (HWLOC_XMLFILE, HWLOC_FSROOT, ...) do redirect ReadLiveMachine, as in hwloc's own
// tools.
//
// All return InvalidArgument for what hwloc, or a CpuSet, cannot hold.

struct LiveMachine {
  Machine::Parts parts;
  // The part of it that containers may use; nullopt where the environment redirected hwloc to a
  // description of another machine.
  std::optional<CgroupSets> pods{};
};
// The CPUs and memory nodes of the cgroup of pods are allowed, or all where that cgroup does not
// tell: hwloc itself would use the cgroup of this process, and containers are not in that one.
// Unavailable when the operating system does not tell.
StatusOr<LiveMachine> ReadLiveMachine(const CgroupPlaces& places);
StatusOr<Machine::Parts> ReadSyntheticMachine(const std::string& description);
// The text of an XML file, as `lstopo --of xml` writes it. hwloc's format has no place for isolated
// CPUs: they are taken from <info name="IsolatedCPUs" value="2-3"/> of the Machine object.
StatusOr<Machine::Parts> ReadXmlMachine(const std::string& xml);

}  // namespace resmgr
