// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pkg/base/units.h"
#include "pkg/topology/cpuset_limits.h"
#include "pkg/topology/machine.h"

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

// About as much as real servers have.
inline constexpr Bytes kSyntheticMemoryPerCpu{int64_t{4} << 30};

// Whether `spec` is a synthetic description without an amount of memory.
bool LeavesMemoryOpen(std::string_view spec);

struct FoundMachine {
  Machine machine;
  std::optional<CgroupSets> pods{};  // of a live machine
};
// As LoadMachine, with the sets of the cgroup of pods if the machine is live.
StatusOr<FoundMachine> FindMachine(std::string_view spec, const CgroupPlaces& places);

// A server that can be bought or rented, by whose name placements can be tried. Numbers of cores,
// caches and threads are from the makers' data sheets.
struct ServerType {
  std::string_view name;         // "epyc-9654-2s", a value for -topology
  std::string_view description;  // for people
  // hwloc's notation; CPU numbers as Linux gives them: the first thread of each core, then the
  // second ones.
  std::string_view synthetic;
  // Distances between two NUMA nodes, as the firmware reports them (10 is local).
  int same_package = 12;
  int other_package = 32;
};

// Sorted by name.
std::span<const ServerType> ServerTypes();

// nullptr if no server type has the name.
const ServerType* FindServerType(std::string_view name);

// Sets the distances between the nodes of this type, which hwloc's notation lacks.
void Complete(const ServerType& type, Machine::Parts& parts);

// The machine as one line of JSON, a fixed outside contract of `cri-resmgr-ctl topology -o json`:
//   {"cpus":[{"id","core","l3","die","numa","package","online","isolated","kind"}],
//    "numa":[{"id","memoryBytes","type","distances":[]}]}
// Ids that a CPU does not have are -1; kind and type are the names of ToString(). `offline` are
// CPUs that went offline since the machine was read: they keep their ids.
std::string MachineToJson(const Machine& machine, const CpuSet& offline = {});

// For people: a summary, a table of NUMA nodes and a table of cores, in which neighbouring cores of
// one kind share a row. Ends with a newline.
std::string MachineToTable(const Machine& machine, const CpuSet& offline = {});

}  // namespace resmgr
