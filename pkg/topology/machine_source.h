// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/topology/machine.h"
#include "pkg/topology/pods_cgroup.h"

namespace resmgr {

// Loads a machine by the value of the flag -topology:
//   live                    the machine that this process runs on
//   synthetic:DESCRIPTION   hwloc's synthetic syntax: "synthetic:package:2 numa:2 l3:2 core:8 pu:2"
//   a server type's name    one of ServerTypes(), with 4 GiB for each CPU
//   xml:FILE or a path      a file written by `lstopo --of xml`
// InvalidArgument when the description is not understood, NotFound when the file is missing,
// Unavailable when the live machine cannot be read.
// `memory_per_cpu` is for synthetic descriptions that tell no amount of memory: each node with CPUs
// has so much for each of them; without it, 1 GiB in all.
StatusOr<Machine> LoadMachine(std::string_view spec, Bytes memory_per_cpu = {});

// Real servers have about as much.
inline constexpr Bytes kSyntheticMemoryPerCpu{int64_t{4} << 30};

// Whether it is a synthetic description that tells no amount of memory.
bool LeavesMemoryOpen(std::string_view spec);

struct FoundMachine {
  Machine machine;
  std::optional<CgroupSets> pods{};  // of a live machine
};
// The same, with the sets of the cgroup of pods on a live machine.
StatusOr<FoundMachine> FindMachine(std::string_view spec, const CgroupPlaces& places);

}  // namespace resmgr
