// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/base/status.h"
#include "pkg/topology/machine.h"
#include "policies/static/static_options.h"

namespace resmgr {

// Which CPUs a container gets for itself alone, out of those that are free. Pure; the machine must
// outlive it.
class ExclusivePicker {
 public:
  ExclusivePicker(const Machine& machine, const StaticOptions& options);

  struct Need {
    int count = 0;  // more than 0
    CpuSet former;  // of an earlier attempt of the container: taken again if it still fits
    std::optional<bool> prefer_isolated;  // what the pod's annotation says
  };
  struct Pick {
    CpuSet cpus;
    std::string rule;  // how they were found, for explain
  };

  // InvalidArgument when such a number can never be granted, ResourceExhausted when it cannot now;
  // the message tells the need and what is free.
  StatusOr<Pick> Take(const Need& need, const CpuSet& ordinary, const CpuSet& isolated) const;

  // Keeps `current` and adds what is nearest to it: the same cores, L3, NUMA nodes, packages.
  StatusOr<Pick> Grow(const CpuSet& current, int count, const CpuSet& free) const;
  // Keeps `count` of `current`.
  StatusOr<Pick> Shrink(const CpuSet& current, int count) const;

 private:
  Status CheckCount(int count) const;
  // What of `free` may be granted: with full-pcpus-only the cores that are free as a whole.
  CpuSet Grantable(const CpuSet& free) const;
  bool MadeOfWholeCores(const CpuSet& cpus) const;
  bool IsOneCore(const CpuSet& cpus) const;
  bool TriesIsolated(const Need& need) const;
  StatusOr<CpuSet> Allocate(const CpuSet& available, const CpuSet& preferred, int count) const;
  Status Shortage(int count, const CpuSet& free) const;

  const Machine& machine_;
  const StaticOptions options_;
  int threads_ = 1;      // of the largest core
  bool uniform_ = true;  // all cores have that many
  CpuAllocatorOptions allocator_options_;
};

}  // namespace resmgr
