// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/model/adjustment.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The files of cgroup v2 with the meaning of a request's field. Runtimes first write all fields,
// then the files in `unified`, so a file wins over its field:
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

// The field that corresponds to this file and value; kCpuQuota also stands for the period. nullopt:
// there is no such field.
std::optional<FieldChange> FieldOfFile(std::string_view file, std::string_view value);

// Whether the edits set a file that corresponds to the field. The time does not depend on the
// number of edits.
bool SetsFileOf(const FieldChange& field, const KeyedEdits<std::string>& unified);

// Whether the file determines on which CPUs or memory nodes the container may run, or which other
// containers may run there: cpuset.*, including cpuset.cpus.partition and cpuset.cpus.exclusive.
bool IsPlacementFile(std::string_view file);

// Sets the field in place of the file. False if the field cannot express exactly this value: for
// cpu.weight, which runtimes compute from shares by different formulas; for memory.swap.max, which
// does not include the memory; for the "max" of memory and huge pages; and for values that cannot
// be read.
bool AddAsField(std::string_view file, std::string_view value, Adjustment& adjustment);

// The field that a change is about: that of the file if the change is a file and has such a field,
// else the change itself.
FieldChange MeaningOf(const FieldChange& change);

// Clears the field, since a file has its value.
void Unset(const FieldChange& field, LinuxResources& resources);

// The file that a field may come from. "": there is none.
std::string FileOf(const FieldChange& change);

}  // namespace resmgr
