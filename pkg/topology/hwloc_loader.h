// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "pkg/topology/cpuset_limits.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The only code that uses hwloc: each call loads one topology and converts it into the parts of a
// machine. Nothing of hwloc remains after the call. I/O devices, small caches and hwloc's own
// groups are left out, so a load takes a few milliseconds. An explicit description overrides
// hwloc's environment variables (HWLOC_XMLFILE, HWLOC_FSROOT, ...), but they do redirect
// ReadLiveMachine, as in hwloc's own tools.
//
// All functions return InvalidArgument for a topology that hwloc, or a CpuSet, cannot hold.

struct LiveMachine {
  Machine::Parts parts;
  // The part of the machine that containers may use; nullopt if the environment redirected hwloc to
  // a description of another machine.
  std::optional<CgroupSets> pods{};
};
// The CPUs and memory nodes of the cgroup of pods count as allowed, or all if that cgroup does not
// tell. hwloc by itself would use the cgroup of this process, which is not the containers'.
// Unavailable if the operating system does not describe the machine.
StatusOr<LiveMachine> ReadLiveMachine(const CgroupPlaces& places);
StatusOr<Machine::Parts> ReadSyntheticMachine(const std::string& description);
// The text of an XML file, as `lstopo --of xml` writes it. hwloc's format has no place for isolated
// CPUs: they are taken from <info name="IsolatedCPUs" value="2-3"/> of the Machine object.
StatusOr<Machine::Parts> ReadXmlMachine(const std::string& xml);

}  // namespace resmgr
