// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/model/adjustment.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The files of cgroup v2 that say what a field of a request says as well. Runtimes write the files
// that `unified` names after all fields, so a file wins over its field:
//
//   cpuset.cpus                    cpuset_cpus
//   cpuset.mems                    cpuset_mems
//   cpu.max                        cpu_quota and cpu_period
//   cpu.weight, cpu.weight.nice    cpu_shares
//   cpu.idle, unless it is 0       cpu_shares: such a group has no weight of its own
//   memory.max                     memory_limit
//   memory.swap.max                memory_swap_limit
//   hugetlb.SIZE.max               hugepage_limits, the entry of this size
//
// No other file has a field. Pure functions.

// What the file says with this value; kCpuQuota stands for the period, too. nullopt: no field says
// that.
std::optional<FieldChange> FieldOfFile(std::string_view file, std::string_view value);

// Whether the edits set a file that says the field; it takes no longer where there are many.
bool SetsFileOf(const FieldChange& field, const KeyedEdits<std::string>& unified);

// Says on which CPUs or memory nodes a container may run, or which others may run there: cpuset.*,
// cpuset.cpus.partition and cpuset.cpus.exclusive among them.
bool IsPlacementFile(std::string_view file);

// Sets the field in place of the file. False: the field cannot say just that. So it is with
// cpu.weight, which runtimes make of shares by different formulas; with memory.swap.max, which is
// without the memory; and with values that cannot be read.
bool AddAsField(std::string_view file, std::string_view value, Adjustment& adjustment);

// The field of a change, be it said by a file; a change that no field says is its own.
FieldChange MeaningOf(const FieldChange& change);

// The file's word takes the place of the field's, which is not said any more.
void Unset(const FieldChange& field, LinuxResources& resources);

// The file that a field may have been translated from. "": there is none.
std::string FileOf(const FieldChange& change);

}  // namespace resmgr
