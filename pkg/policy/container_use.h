// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::policy {

// The use of one container, on average over MeasuredUse::over.
struct ContainerUse {
  double cpus = 0;  // CPUs; a busy loop with a CPU of its own uses 1
  // Percent of the time, 0 to 100, in which some task of it waited for a CPU. nullopt: the kernel
  // does not tell, or a quota throttled the container, which the kernel counts as waiting, too.
  std::optional<double> pressure{};

  friend bool operator==(const ContainerUse&, const ContainerUse&) = default;
};

// The use of containers until now, for policies that decide by it. A value, made by the sampler; no
// decision waits for it. A container that is missing was not measured: it started too recently, is
// not bound by the policy or has no readable cgroup.
struct MeasuredUse {
  std::chrono::system_clock::time_point until{};  // the latest sample
  // The period of the averages: about a minute, or the time since the first samples if that is
  // less. 0: nothing was measured.
  std::chrono::milliseconds over{0};
  std::map<ContainerKey, ContainerUse> containers{};

  bool empty() const { return containers.empty(); }
  // nullptr: it was not measured.
  const ContainerUse* Find(ContainerKey key) const {
    const auto found = containers.find(key);
    return found == containers.end() ? nullptr : &found->second;
  }

  friend bool operator==(const MeasuredUse&, const MeasuredUse&) = default;
};

// A pool whose containers share its CPUs. Pools may have CPUs in common, as a node and its package.
struct SharedPool {
  std::string name{};
  CpuSet cpus{};  // where they run now; never empty
};

// A container that runs on the shared CPUs of one pool, beside CPUs of its own or not.
struct SharedContainer {
  ContainerKey key{};
  size_t pool = 0;  // index in SharedPools::pools
};

// Values: where containers share CPUs at one moment.
struct SharedPools {
  std::vector<SharedPool> pools{};
  std::vector<SharedContainer> containers{};  // ascending by key
};

// A move of one container to another shared pool.
struct PoolMove {
  ContainerKey key{};
  std::string pool{};

  friend bool operator==(const PoolMove&, const PoolMove&) = default;
};

}  // namespace resmgr::policy
