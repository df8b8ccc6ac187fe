// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/allocator/exclusive_options.h"
#include "pkg/base/status.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Chooses the free CPUs that a container gets exclusively. Pure; the machine must outlive it.
class ExclusivePicker {
 public:
  // `all` are the CPUs of the policy, the reserved ones included, for messages; by default those of
  // the machine.
  ExclusivePicker(const Machine& machine, const ExclusiveOptions& options, const CpuSet& all = {});

  struct Need {
    int count = 0;  // more than 0
    // The CPUs that the container, or an earlier attempt of it, had: all are taken again if all are
    // free, else as many as are free, unless that needs more cores, L3 caches, NUMA nodes or
    // packages than other CPUs would.
    CpuSet former{};
    // `former` are the CPUs of the place that it asks for, where it has not run: if the place has
    // enough free ones, the CPUs are of it.
    bool former_is_place = false;
    // CPUs that ended containers of its pod have left: taken before others, unless that needs more
    // cores, L3 caches, NUMA nodes or packages.
    CpuSet left_by_pod{};
    std::optional<bool> prefer_isolated{};  // the pod's annotation; false: no isolated ones
    bool require_isolated = false;          // refuses CPUs that are not isolated
  };
  // A considered set, for explain.
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

  // kInvalidArgument if such a number can never be granted, kResourceExhausted if it cannot now;
  // the message tells the need and the free CPUs.
  StatusOr<Pick> Take(const Need& need, const CpuSet& ordinary, const CpuSet& isolated) const;

  // Keeps `current` and adds the nearest CPUs: of the same cores, L3, NUMA nodes, packages.
  StatusOr<Pick> Grow(const CpuSet& current, int count, const CpuSet& free) const;
  // Keeps `count` of `current`, those in `preferred` first.
  StatusOr<Pick> Shrink(const CpuSet& current, int count, const CpuSet& preferred = {}) const;
  // The part of `free` that may be granted: with full-pcpus-only the cores that are free as a
  // whole.
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
  // Takes at least part of `current`, at most `count`, all of `current` if it is smaller.
  StatusOr<CpuSet> Around(const CpuSet& current, int count, const CpuSet& usable) const;
  StatusOr<CpuSet> Allocate(const CpuSet& available, const CpuSet& preferred, int count) const;
  CpuSet AllocateBySize(const CpuSet& available, const CpuSet& preferred, int count) const;
  Status Shortage(int count, const CpuSet& free, std::string_view kind) const;

  const Machine& machine_;
  const ExclusiveOptions options_;
  const CpuSet all_;
  int threads_ = 1;      // of the largest core
  bool uniform_ = true;  // all cores have that many
  CpuAllocatorOptions allocator_options_;
};

}  // namespace resmgr
