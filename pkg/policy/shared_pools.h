// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::policy {

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
