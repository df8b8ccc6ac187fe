// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pkg/topology/machine.h"

namespace resmgr {

// The cores of which all threads are among these CPUs.
CpuSet WholeCores(const Machine& machine, const CpuSet& cpus);

// The cores of a machine while CPUs are offline: a core has the threads that are online.
class OnlineCores {
 public:
  // `offline`: CPUs that may have gone offline since the machine was read.
  OnlineCores(const Machine& machine, const CpuSet& offline);

  const std::vector<CpuSet>& all() const { return cores_; }
  // The number of threads of the largest core, at least 1, and whether all cores have as many.
  int threads() const { return threads_; }
  bool uniform() const { return uniform_; }
  // The cores with at least so many threads, as far as all their threads are among these CPUs.
  CpuSet Whole(const CpuSet& cpus, int threads = 1) const;
  CpuSet WithSiblings(const CpuSet& cpus) const;

 private:
  std::vector<CpuSet> cores_;
  int threads_ = 1;
  bool uniform_ = true;
};

// The lowest of these CPUs in each core.
CpuSet OneThreadPerCore(const Machine& machine, const CpuSet& cpus);

}  // namespace resmgr
