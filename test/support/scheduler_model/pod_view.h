// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/scheduler_model/exact_quantity.h"

namespace resmgr::test {

// A pod as a scheduler reads it from the API server. Pure functions and values.

enum class PodQos { kGuaranteed, kBurstable, kBestEffort };

enum class SchedulerContainerKind {
  kInit,     // ends before the next one starts
  kSidecar,  // an init container with restartPolicy Always
  kApp,
};

struct SchedulerContainer {
  std::string name;
  SchedulerContainerKind kind = SchedulerContainerKind::kApp;
  ResourceList requests;
};

struct PodView {
  PodQos qos = PodQos::kBestEffort;
  // Init containers and sidecars in the pod's order, then app containers.
  std::vector<SchedulerContainer> containers;
  // The most that the pod needs at any time: app containers with all sidecars, or an init container
  // with the sidecars before it; with the overhead.
  ResourceList effective;
};

// The pod's status.qosClass, or else the class that follows from its requests and limits, is its
// QoS class. Throws nlohmann's exceptions and std::invalid_argument for what is not a pod.
PodView PodViewOf(const nlohmann::json& pod);

// cpu, memory and hugepages-*: resources that the kubelet's own managers align.
bool IsAlignedByKubelet(std::string_view resource);
// DOMAIN/NAME beyond kubernetes.io.
bool IsExtended(std::string_view resource);
// Whether a container asks for an extended resource.
bool HasExtended(const PodView& pod);

}  // namespace resmgr::test
