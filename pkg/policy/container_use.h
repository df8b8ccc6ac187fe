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
  // Percent of the time, 0 to 100, in which some task of the container waited for a CPU. nullopt:
  // the kernel does not report it, or a quota throttled the container, which the kernel counts as
  // waiting, too.
  std::optional<double> pressure{};

  friend bool operator==(const ContainerUse&, const ContainerUse&) = default;
};

// The measured use of containers, for policies that place containers by use. A value, made by the
// sampler; no decision waits for a measurement. Containers are missing if they started too
// recently, are not bound by the policy or have no readable cgroup.
struct MeasuredUse {
  std::chrono::system_clock::time_point until{};  // the latest sample
  // The period of the averages: about a minute, or the time since the first samples if that is
  // less. 0: nothing was measured.
  std::chrono::milliseconds over{0};
  std::map<ContainerKey, ContainerUse> containers{};

  bool empty() const { return containers.empty(); }
  // nullptr: the container was not measured.
  const ContainerUse* Find(ContainerKey key) const {
    const auto found = containers.find(key);
    return found == containers.end() ? nullptr : &found->second;
  }

  friend bool operator==(const MeasuredUse&, const MeasuredUse&) = default;
};

// A pool whose containers share its CPUs. Pools may have CPUs in common, as a node and its package.
struct SharedPool {
  std::string name{};
  CpuSet cpus{};  // where its containers run now; never empty
};

// A container that runs on the shared CPUs of one pool; it may also have CPUs of its own.
struct SharedContainer {
  ContainerKey key{};
  size_t pool = 0;  // index in SharedPools::pools
};

// Where containers share CPUs at one moment. A value type.
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
