// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/scheduled_node.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/agent_service.h"
#include "agent/slice_writer.h"
#include "agent/topology_writer.h"
#include "pkg/api/node_claims.pb.h"
#include "pkg/api/node_reports.pb.h"
#include "pkg/base/json.h"
#include "pkg/claims/claim_place.h"
#include "pkg/dra/claim_object.h"
#include "pkg/dra/driver.h"
#include "pkg/node/dra_reports.h"
#include "pkg/schedview/placeable.h"
#include "pkg/schedview/scheduler_view.h"
#include "test/integration/brain/random_requests.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

// The kubelet evicts pods below this (memory.available), so it is not allocatable.
constexpr int64_t kKeptMemory = int64_t{100} << 20;

QosClass QosClassOf(PodQos qos) {
  switch (qos) {
    case PodQos::kGuaranteed:
      return QosClass::kGuaranteed;
    case PodQos::kBurstable:
      return QosClass::kBurstable;
    case PodQos::kBestEffort:
      return QosClass::kBestEffort;
  }
  return QosClass::kBestEffort;
}

int64_t AmountOf(const ResourceList& resources, std::string_view name, int64_t factor = 1) {
  const auto found = resources.find(name);
  return found == resources.end() ? 0 : (found->second * factor).Value();
}

// Keeps the reports that come.
class KeepingAgent final : public agent::AgentHandler {
 public:
  void GetNode(TextDone done) override { done(""); }
  void PatchNode(std::vector<agent::PatchOperation> /*operations*/, Done done) override {
    done(OkStatus());
  }
  void UpdateNodeCapacity(std::map<std::string, std::string> /*capacities*/, Done done) override {
    done(OkStatus());
  }
  void HealthCheck(std::string /*query*/, TextDone done) override { done(""); }
  Status ShowCpus(std::string /*cpus*/) override { return OkStatus(); }
  StatusOr<uint64_t> AddPodEvents(const cri_resmgr::v1::AddPodEventsRequest& /*request*/) override {
    return 0;
  }
  Status ShowTopology(std::optional<SchedulerView> view) override {
    topology = *std::move(view);
    return agent::CheckTopology(topology);
  }
  void GetClaim(const std::string& /*namespace_name*/, const std::string& /*name*/,
                TextDone done) override {
    done("");
  }
  Status ShowDevices(std::optional<cri_resmgr::v1::ShowDevicesRequest> report) override {
    devices = *std::move(report);
    return agent::CheckDevices(kPublishedNode, devices);
  }
  std::string Pool() const override { return std::string(kPublishedNode); }

  SchedulerView topology;
  cri_resmgr::v1::ShowDevicesRequest devices;
};

void Tell(const UnaryServer::Methods& methods, const std::string& method,
          const std::string& message) {
  methods.at(method)(message, [&method](const StatusOr<std::string>& reply) {
    EXPECT_TRUE(reply.ok()) << method << ": " << reply.status();
  });
}

}  // namespace

PodView AsCompared(PodView pod) {
  pod.qos = PodQos::kGuaranteed;
  return pod;
}

ScheduledNode::ScheduledNode(const PolicyFactory& factory, Machine machine,
                             const std::string& reserved, const std::string& section,
                             dra::Driver driver, bool refuse)
    : ClaimedNode(factory, std::move(machine), reserved, section),
      driver_(std::move(driver)),
      refuse_(refuse) {
  int64_t memory = 0;
  int64_t huge = 0;
  for (const NumaNode& node : this->machine().nodes()) {
    if (node.allowed) memory += node.OrdinaryMemory().value;
    for (const HugePages& pages : node.huge_pages)
      huge += pages.Total().value;
  }
  const int64_t cpus = this->machine().allowed().size() - Cpus(reserved).size();
  allocatable_["cpu"] = ExactQuantity(cpus);
  allocatable_["memory"] = ExactQuantity(memory - kKeptMemory);
  allocatable_["hugepages-2Mi"] = ExactQuantity(huge);
  allocatable_["ephemeral-storage"] = ExactQuantity(int64_t{1} << 40);
  allocatable_[kRandomDevice] = ExactQuantity(1000);
}

PublishedObjects ScheduledNode::Publish() {
  return test::Publish(machine(), policy(), snapshot(), driver_, devices_, refuse_);
}

bool ScheduledNode::HasRoomFor(const PodView& pod) const {
  ResourceList sum = pod.effective;
  for (const auto& [name, effective] : effective_) {
    for (const auto& [resource, quantity] : effective)
      sum[resource] += quantity;
  }
  for (const auto& [resource, quantity] : sum) {
    const auto found = allocatable_.find(resource);
    if (found == allocatable_.end() || quantity > found->second) return false;
  }
  return true;
}

ContainerKey ScheduledNode::Add(const json& pod, const SchedulerContainer& container, PodQos qos) {
  const std::string pod_name = pod.at("metadata").at("name");
  Container& added = snapshot().Add(container.name, QosClassOf(qos), 0);
  const ContainerKey key = added.key;
  added.pod_id = PodSandboxId(pod_name);
  added.requirements = {.cpu_request = {AmountOf(container.requests, "cpu", 1000)},
                        .memory_request = {AmountOf(container.requests, "memory")}};
  if (qos == PodQos::kGuaranteed) {
    added.requirements.cpu_limit = added.requirements.cpu_request;
    added.requirements.memory_limit = added.requirements.memory_request;
  }
  const int64_t huge = AmountOf(container.requests, "hugepages-2Mi");
  if (huge > 0) added.requested.hugepage_limits["2MB"] = static_cast<uint64_t>(huge);
  Pod& owner = snapshot().PodOf(key);
  owner.id = PodSandboxId(pod_name);
  owner.uid = PodUid("uid-" + pod_name);
  owner.name = pod_name;
  owner.namespace_name = pod.at("metadata").at("namespace");
  return key;
}

void ScheduledNode::Start(const json& pod, bool in_one_zone) {
  const PodView view = PodViewOf(pod);
  std::vector<ContainerKey>& running = pods_[pod.at("metadata").at("name")];
  effective_[pod.at("metadata").at("name")] = view.effective;
  for (const SchedulerContainer& container : view.containers) {
    const StatusOr<ContainerKey> key = ClaimedNode::Start(Add(pod, container, view.qos));
    ASSERT_TRUE(key.ok()) << container.name << ": " << key.status();
    if (in_one_zone) CheckPlace(snapshot().At(*key).placement, container);
    if (container.kind == SchedulerContainerKind::kInit) {
      Remove(*key);
    } else {
      running.push_back(*key);
    }
  }
}

void ScheduledNode::CheckPlace(const Placement& placement, const SchedulerContainer& container) {
  if (placement.exclusive.empty()) return;
  EXPECT_EQ(machine().NodesOf(placement.exclusive).size(), 1)
      << container.name << " has " << placement.exclusive.ToString() << ": " << placement.reason;
}

void ScheduledNode::Resize(const std::string& pod, MilliCpu cpu) {
  const ContainerKey key = pods_.at(pod).front();
  const MilliCpu before = snapshot().At(key).requirements.cpu_request;
  PodView more;
  more.effective["cpu"] = ExactQuantity((cpu - before).value / 1000);
  if (!HasRoomFor(more)) return;
  const Status status = ClaimedNode::Resize(key, cpu);
  EXPECT_NE(status.code(), StatusCode::kInternal) << status;
  if (status.ok()) effective_[pod]["cpu"] += more.effective["cpu"];
}

void ScheduledNode::End(const std::string& pod) {
  for (const ContainerKey key : pods_.at(pod))
    Remove(key);
  pods_.erase(pod);
  effective_.erase(pod);
}

void ScheduledNode::Prepare(const json& claim) {
  const json& metadata = claim.at("metadata");
  const dra::ClaimName name{.uid = metadata.at("uid"),
                            .namespace_name = metadata.at("namespace"),
                            .name = metadata.at("name")};
  const StatusOr<dra::AllocatedClaim> allocated =
      dra::ParseClaimObject(JsonText(claim), name, driver_);
  ASSERT_TRUE(allocated.ok()) << allocated.status();
  const StatusOr<ClaimGrant> grant = Reserve(allocated->claim);
  ASSERT_TRUE(grant.ok()) << grant.status();
  ASSERT_EQ(grant->cpus.size(), allocated->claim.parts.size());
  for (size_t part = 0; part < grant->cpus.size(); ++part) {
    const ClaimPart& wanted = allocated->claim.parts[part];
    EXPECT_EQ(grant->cpus[part].size(), wanted.cpus);
    const StatusOr<ClaimPlace> place = PlaceOf(wanted, machine());
    ASSERT_TRUE(place.ok()) << place.status();
    EXPECT_TRUE(grant->cpus[part].IsSubsetOf(place->cpus))
        << wanted.device << ": " << grant->cpus[part].ToString();
  }
}

PublishedObjects Publish(const Machine& machine, const ClaimedPolicy& policy,
                         const Snapshot& snapshot, const dra::Driver& driver, DraDevices devices,
                         bool refuse) {
  const SchedulerView view = MakeSchedulerView(machine, policy, snapshot, refuse);
  PublishedObjects objects;
  objects.step = CpuStep(policy.behind(), machine).value_or(1);
  const std::vector<ClaimPart> places = dra::DevicePlaces(machine, devices);
  const std::vector<int> grantable =
      ClaimableCpus(policy, snapshot, places, machine, {.step = objects.step});
  KeepingAgent agent;
  const UnaryServer::Methods methods = agent::AgentService(agent);
  Tell(methods, "/cri_resmgr.v1.NodeReports/ShowTopology", view.SerializeAsString());
  Tell(methods, "/cri_resmgr.v1.NodeClaims/ShowDevices",
       DeviceReport(
           driver,
           dra::NodeDevices(driver, places, grantable, policy.held(), machine, objects.step), 1));
  objects.topology = agent::TopologyObject(kPublishedNode, "node-uid", agent.topology);
  objects.slices.push_back(agent::SliceObject(kPublishedNode, "node-uid", agent.devices, 1));
  return objects;
}

}  // namespace resmgr::test
