// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The text of one of the kernel's short files, such as a list of CPUs, without white space around
// it. Errors as from ReadFile (pkg/sys/files.h).
StatusOr<std::string> ReadKernelText(const std::string& path);
// The list of CPUs in a file of the kernel; an error about the list begins with the path.
StatusOr<CpuSet> ReadKernelCpus(const std::string& path);

// Lists that this machine's kernel has in sysfs, and that hwloc does not read or does not keep.
// They are below the directory HWLOC_FSROOT, if that variable is set. A file that is missing or
// cannot be read says nothing.

// The CPUs of isolcpus, as a list. An old kernel has no such file.
std::string IsolatedByKernel();

// Sets the node of each CPU which the kernel says is of another node than hwloc does: if all CPUs
// of a node are offline, hwloc gives it those of its nearest node.
void ApplyLocalNodes(Machine::Parts& parts);

// Sets which CPUs are efficient cores, if the kernel lists more than one type of Intel's cores.
void ApplyCoreTypes(std::vector<Cpu>& cpus);

}  // namespace resmgr
