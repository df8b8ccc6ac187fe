// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/base/status.h"
#include "pkg/config/config_section.h"
#include "pkg/topology/core_sets.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The configuration of how CPUs are chosen for exclusive use. Names and meaning of the options up
// to `prefer_align_cpus_by_uncorecache` are those of the kubelet's CPU Manager policy options
// (Kubernetes 1.33), except where noted.
struct ExclusiveOptions {
  // Grants whole physical cores only (KEP-2625).
  bool full_pcpus_only = false;
  // Takes the same number of CPUs from each of as few NUMA nodes as can hold them (KEP-2902).
  bool distribute_cpus_across_numa = false;
  // Takes threads of different cores (KEP-4176).
  bool distribute_cpus_across_cores = false;
  // Takes CPUs of one package if one can hold them all (KEP-3327). The kubelet only widens the
  // hints of its topology manager to packages; here the CPUs themselves are chosen so.
  bool align_by_socket = false;
  // Takes whole L3 groups first (KEP-4800).
  bool prefer_align_cpus_by_uncorecache = false;
  // Exclusive containers run without CFS quota (kubelet: DisableCPUQuotaWithExclusiveCPUs).
  bool lift_quota = true;
  // Takes CPUs that the kernel isolates before ordinary ones, for every container. Not
  // described by DescribeExclusiveOptions.
  bool prefer_isolated = false;
};

// Adds the map of options: the kubelet's names, and cpu-quota: lift | keep. Options that exclude
// each other are errors.
void DescribeExclusiveOptions(ConfigSection& section, ExclusiveOptions& options);

// kInvalidArgument if the options cannot be met on this machine.
Status CheckExclusiveOptions(const Machine& machine, const ExclusiveOptions& options);

// Chooses the free CPUs that a container gets exclusively. Pure; the machine must outlive it.
class ExclusivePicker {
 public:
  // `all` are the CPUs of the policy, the reserved ones included, as messages name them; by default
  // the CPUs of the machine. `offline`: CPUs that went offline since the machine was read; a core
  // has the threads that are online.
  ExclusivePicker(const Machine& machine, const ExclusiveOptions& options, const CpuSet& all = {},
                  const CpuSet& offline = {});

  struct Need {
    int count = 0;  // more than 0
    // The CPUs of the container or of an earlier attempt: all are taken again if all are free, else
    // as many as are free, unless that needs more cores, L3 caches, NUMA nodes or packages than
    // other CPUs would.
    CpuSet former{};
    // `former` is the place that the container asks for, where it has not run yet: if enough CPUs
    // of that place are free, all picked CPUs are from there.
    bool former_is_place = false;
    // CPUs that ended containers of its pod have left: taken before others, unless that needs more
    // cores, L3 caches, NUMA nodes or packages.
    CpuSet left_by_pod{};
    std::optional<bool> prefer_isolated{};  // the pod's annotation; false: no isolated ones
    bool require_isolated = false;          // refuses CPUs that are not isolated
  };
  // A set of CPUs that was considered, for explain.
  struct Candidate {
    std::string_view name;     // string literals
    std::string_view verdict;  //
    int free = 0;              // CPUs that could be granted
  };
  struct Pick {
    CpuSet cpus;
    std::string_view rule;  // the rule that chose the CPUs; a string literal
    std::vector<Candidate> considered;
  };

  // kInvalidArgument if so many CPUs can never be granted, kResourceExhausted if not now; the
  // message names the need and the free CPUs.
  StatusOr<Pick> Take(const Need& need, const CpuSet& ordinary, const CpuSet& isolated) const;

  // Keeps `current` and adds the nearest CPUs: of the same cores, L3, NUMA nodes, packages.
  StatusOr<Pick> Grow(const CpuSet& current, int count, const CpuSet& free) const;
  // Keeps `count` of `current`, those in `preferred` first.
  StatusOr<Pick> Shrink(const CpuSet& current, int count, const CpuSet& preferred = {}) const;
  // The part of `free` that may be granted: with full-pcpus-only, only cores of which all online
  // threads are free.
  CpuSet Grantable(const CpuSet& free) const;

 private:
  Status CheckCount(int count) const;
  bool MadeOfWholeCores(const CpuSet& cpus) const;
  bool IsOneCore(const CpuSet& cpus) const;
  bool TriesIsolated(const Need& need) const;
  std::optional<Pick> TakeFormer(const Need& need, const CpuSet& usable) const;
  std::optional<CpuSet> TakeLeft(const Need& need, const CpuSet& usable, const CpuSet& anew) const;
  bool SpreadAs(const CpuSet& cpus, const CpuSet& anew) const;
  StatusOr<Pick> TakeAnew(const Need& need, const CpuSet& ordinary, const CpuSet& isolated) const;
  // Takes as many CPUs of `current` as `count` allows, and the missing ones near them.
  StatusOr<CpuSet> Around(const CpuSet& current, int count, const CpuSet& usable) const;
  StatusOr<CpuSet> Allocate(const CpuSet& available, const CpuSet& preferred, int count) const;
  CpuSet AllocateBySize(const CpuSet& available, const CpuSet& preferred, int count) const;
  Status Shortage(int count, const CpuSet& free, std::string_view kind) const;

  const Machine& machine_;
  const ExclusiveOptions options_;
  const CpuSet all_;
  const OnlineCores cores_;
  CpuAllocatorOptions allocator_options_;
};

}  // namespace resmgr
