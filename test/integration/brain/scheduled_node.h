// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/claims/claimed_policy.h"
#include "pkg/config/module_configs.h"
#include "pkg/dra/driver.h"
#include "pkg/model/snapshot.h"
#include "pkg/topology/machine.h"
#include "test/integration/brain/claimed_node.h"
#include "test/support/scheduler_model/pod_view.h"

namespace resmgr::test {

inline constexpr std::string_view kPublishedNode = "worker-1";

// The objects of a node that the API server has, made as the daemon and its agent make them: from
// the policy to the daemon's reports, through the agent's service, to the agent's objects.
struct PublishedObjects {
  nlohmann::json topology;                          // NodeResourceTopology
  nlohmann::json slices = nlohmann::json::array();  // ResourceSlices
  int step = 1;                                     // CPUs that claims get at a time
};

// A report that the agent refuses fails the test. `devices` is dra.Devices, `refuse`
// nrt.Alignment.
PublishedObjects Publish(const Machine& machine, const ClaimedPolicy& policy,
                         const Snapshot& snapshot, const dra::Driver& driver, DraDevices devices,
                         bool refuse);

// The pod as one whose CPUs the plugin compares: a Guaranteed one. Others pass the plugin whatever
// they ask for, and a policy that refuses for want of room may refuse them.
PodView AsCompared(PodView pod);

// A node with a policy, and the part of the kubelet for pods and claims that a scheduler binds to
// it. A refusal, and CPUs that are not those of the objects, fail the test. Thread-compatible.
class ScheduledNode : public ClaimedNode {
 public:
  ScheduledNode(const PolicyFactory& factory, Machine machine, const std::string& reserved,
                const std::string& section, dra::Driver driver, bool refuse);

  PublishedObjects Publish();
  const dra::Driver& driver() const { return driver_; }
  // The configuration changes: NUMA nodes are the devices, or L3 caches in their place.
  void SwitchDevices() {
    devices_ = devices_ == DraDevices::kNuma ? DraDevices::kL3 : DraDevices::kNuma;
  }

  // v1.Node status.allocatable.
  const ResourceList& allocatable() const { return allocatable_; }
  // Whether the default scheduler lets the pod pass (NodeResourcesFit): what the pods on the node
  // ask for together is allocatable.
  bool HasRoomFor(const PodView& pod) const;

  // Creates the pod's containers one after the other. `in_one_zone`: CPUs of a container that are
  // its own have to be in one NUMA node.
  void Start(const nlohmann::json& pod, bool in_one_zone);
  // Resizes the first container of a pod in place, if that fits what is allocatable.
  void Resize(const std::string& pod, MilliCpu cpu);
  // Ends a pod, with all its containers.
  void End(const std::string& pod);
  // By name.
  const std::map<std::string, std::vector<ContainerKey>>& pods() const { return pods_; }

  // NodePrepareResources of an allocated claim, and NodeUnprepareResources.
  void Prepare(const nlohmann::json& claim);
  void Unprepare(const nlohmann::json& claim) { GiveBack(claim.at("metadata").at("uid")); }

 private:
  ContainerKey Add(const nlohmann::json& pod, const SchedulerContainer& container, PodQos qos);
  void CheckPlace(const Placement& placement, const SchedulerContainer& container);

  const dra::Driver driver_;
  DraDevices devices_ = DraDevices::kNuma;
  const bool refuse_;
  ResourceList allocatable_;
  std::map<std::string, std::vector<ContainerKey>> pods_;
  std::map<std::string, ResourceList> effective_;  // by pod
};

}  // namespace resmgr::test
