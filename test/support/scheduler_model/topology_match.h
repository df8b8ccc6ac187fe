// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "test/support/scheduler_model/pod_view.h"
#include "test/support/scheduler_model/topology_view.h"

namespace resmgr::test {

// A model of the plugin NodeResourceTopologyMatch (scheduler-plugins), made from a description of
// its behaviour and not from the code that publishes the objects: its filter, with the errors in it
// that objects can trigger, and its score LeastNUMANodes. Pure functions.

enum class FilterVerdict {
  kPasses,
  kUnschedulable,
  kPanics,  // the object makes the plugin index beyond a list
};

struct FilterAnswer {
  FilterVerdict verdict = FilterVerdict::kPasses;
  std::string reason;  // the plugin's message where the verdict is kUnschedulable
  // Where the plugin supposes the containers: the NUMA id for each container of the pod's view, or
  // one for the whole pod with the scope pod. Empty where the filter did not look at zones.
  std::vector<int> zones;
};

// A node, as the scheduler knows it.
struct SchedulerNode {
  ResourceList allocatable;                // v1.Node status.allocatable
  const TopologyView* topology = nullptr;  // nullptr: the node has no object
  bool fresh = true;                       // no foreign pod, no reservation that makes it stale
};

FilterAnswer FilterByTopology(const SchedulerNode& node, const PodView& pod);

// 0 to 100.
int LeastNumaNodesScore(const SchedulerNode& node, const PodView& pod);

}  // namespace resmgr::test
