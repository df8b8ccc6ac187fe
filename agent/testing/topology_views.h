// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/api/node_reports.pb.h"

namespace resmgr::agent {

// Adds the next zone, with these distances.
inline cri_resmgr::v1::TopologyZone& AddZone(cri_resmgr::v1::ShowTopologyRequest& view,
                                             const std::vector<int>& distances) {
  const int id = view.zones_size();
  cri_resmgr::v1::TopologyZone& zone = *view.add_zones();
  zone.set_numa_id(id);
  zone.mutable_distances()->Add(distances.begin(), distances.end());
  return zone;
}

inline void AddAmount(cri_resmgr::v1::TopologyZone& zone, const std::string& name, int64_t capacity,
                      int64_t allocatable, int64_t available) {
  cri_resmgr::v1::TopologyAmount& amount = *zone.add_amounts();
  amount.set_name(name);
  amount.set_capacity(capacity);
  amount.set_allocatable(allocatable);
  amount.set_available(available);
}

inline void AddPod(cri_resmgr::v1::ShowTopologyRequest& view, const std::string& pod_namespace,
                   const std::string& name) {
  cri_resmgr::v1::TopologyPod& pod = *view.add_pods();
  pod.set_pod_namespace(pod_namespace);
  pod.set_pod(name);
}

inline void AddPool(cri_resmgr::v1::ShowTopologyRequest& view, const std::string& name,
                    const std::string& cpus, const std::string& exclusive = "") {
  cri_resmgr::v1::TopologyPool& pool = *view.add_pools();
  pool.set_name(name);
  pool.set_cpus(cpus);
  pool.set_exclusive(exclusive);
}

}  // namespace resmgr::agent
