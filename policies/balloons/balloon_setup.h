// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "pkg/policy/registry.h"
#include "policies/balloons/balloons_options.h"
#include "policies/balloons/cpu_chooser.h"

namespace resmgr {

// The options as applied to this machine; fixed during the life of a policy. The machine must
// outlive it.
class BalloonSetup {
 public:
  // InvalidArgument if the options do not fit the machine.
  static StatusOr<BalloonSetup> Create(const PolicyContext& context, BalloonsOptions options);

  const Machine& machine() const { return *machine_; }
  const BalloonsOptions& options() const { return options_; }
  const CpuSet& available() const { return available_; }
  const CpuChooser& chooser() const { return chooser_; }
  // Whether the balloons that always exist fit if no CPU is offline, as far as numbers tell.
  bool FitsOnline() const;
  // Milli-CPUs that the scheduler counts as allocatable; all of them if all are reserved: a node
  // that gets containers with requests counts others.
  int64_t allocatable_milli() const;

  // Whether any type keeps room for its balloons, or follows what containers use.
  bool keeps_rooms() const { return keeps_rooms_; }
  bool follows_use() const { return follows_use_; }

  int types() const { return static_cast<int>(options_.types.size()); }
  const BalloonType& type(int index) const { return options_.types[static_cast<size_t>(index)]; }
  // The type of containers that stand for claims. It is not in the configuration, and no type there
  // can have its name.
  int claim_type() const { return types() - 1; }
  // The rules of a type, without loads of other balloons.
  const CpuChoiceRules& rules(int type) const { return rules_[static_cast<size_t>(type)]; }
  // The parts of the machine in which balloons of a type share idle CPUs; empty if they do not.
  const std::vector<CpuSet>& sharing(int type) const { return sharing_[static_cast<size_t>(type)]; }

  int MinBalloons(int type) const;
  int MaxBalloons(int type) const;  // a very large number if there is no limit
  // How many may go on existing: `instances` may mean fewer while CPUs are offline, but that
  // dissolves no balloon.
  int MostKept(int type) const;
  // The CPUs that balloon `index` of a type may have, offline ones included; all CPUs if the type
  // does not have its instances per level.
  const CpuSet& Bounds(int type, int index) const;
  bool HasBounds(int type) const { return !instance_parts_[static_cast<size_t>(type)].empty(); }
  // The CPUs that this balloon has from the start and always keeps.
  CpuSet Fixed(int type, int index) const;
  int MinCpus(int type, int index) const;
  int MaxCpus(int type, int index) const;  // very large: no limit; 0: takes no containers
  // Whole CPUs for the request, without limits.
  int CpusFor(int type, int64_t milli_cpu) const;
  // The number of CPUs of a balloon of the type that is to have `cpus`: each component's size is
  // rounded up.
  int WholeSize(int type, int cpus) const;
  // The share of `cpus` for one of `count` components, at least the minimum size of its type.
  int ShareOf(int component, int cpus, size_t count) const;

 private:
  BalloonSetup(const Machine& machine, const CpuSet& available, BalloonsOptions options);
  void LeaveOut(const CpuSet& offline);
  Status Reserve(const PolicyContext& context);
  Status CountInstances();
  Status CheckCounts() const;
  Status CheckFixed() const;
  Status CheckRooms() const;
  int RoomsOnline(const BalloonType& type) const;
  void MakeRules();
  std::vector<BalloonHint> HintsOf(const BalloonType& type,
                                   const std::vector<BalloonHint>& devices) const;

  const Machine* machine_;
  CpuSet available_;
  BalloonsOptions options_;
  CpuChooser chooser_;
  CpuSet offline_;            // CPUs that would be available if they were online
  std::vector<int> missing_;  // by type: number of the CPUs in its list that are offline
  std::vector<int64_t> instances_online_;  // by type: what `instances` means without offline CPUs
  int64_t reserved_milli_ = 0;             // not allocatable
  bool keeps_rooms_ = false;
  bool follows_use_ = false;
  std::vector<CpuChoiceRules> rules_;
  std::vector<std::vector<CpuSet>> sharing_;
  std::vector<std::vector<CpuSet>> instance_parts_;  // by type: the parts with its instances
};

// The node's own CPUs, or those beside a node that has memory only.
const CpuSet& CpusNearNode(const NumaNode& node);

// The CPUs near to a device, if its path alone shows them: a NUMA node, a CPU or a cache below
// /sys/devices/system. Empty for all other devices.
CpuSet CpusNearDevice(const Machine& machine, std::string_view path);

}  // namespace resmgr
