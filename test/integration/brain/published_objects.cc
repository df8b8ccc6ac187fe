// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/published_objects.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/agent_service.h"
#include "agent/slice_object.h"
#include "agent/topology_object.h"
#include "pkg/dra/node_devices.h"
#include "pkg/node/device_report.h"
#include "pkg/node/scheduler_watch.h"
#include "pkg/schedview/claimable.h"
#include "pkg/schedview/placeable.h"
#include "pkg/schedview/scheduler_view.h"

namespace resmgr::test {
namespace {

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
  StatusOr<uint64_t> AddPodEvents(const std::vector<agent::PodEvent>& /*events*/) override {
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
  Status ShowDevices(std::optional<agent::DeviceReport> report) override {
    devices = *std::move(report);
    return agent::CheckDevices(kPublishedNode, devices);
  }
  std::string Pool() const override { return std::string(kPublishedNode); }

  SchedulerView topology;
  agent::DeviceReport devices;
};

void Tell(const UnaryServer::Methods& methods, const std::string& method,
          const std::string& message) {
  methods.at(method)(message, [&method](const StatusOr<std::string>& reply) {
    EXPECT_TRUE(reply.ok()) << method << ": " << reply.status();
  });
}

int MostThreadsOfCore(const Machine& machine) {
  int most = 1;
  for (const CpuSet& core : machine.cores())
    most = std::max(most, core.size());
  return most;
}

}  // namespace

PublishedObjects Publish(const Machine& machine, const ClaimedPolicy& policy,
                         const Snapshot& snapshot, const dra::Driver& driver, DraDevices devices,
                         bool refuse) {
  const SchedulerView view = MakeSchedulerView(machine, policy, snapshot, refuse);
  PublishedObjects objects;
  objects.step =
      CpuStep(policy.behind(), {.threads_per_core = MostThreadsOfCore(machine)}).value_or(1);
  const std::vector<ClaimPart> places = dra::DevicePlaces(machine, devices);
  const std::vector<int> grantable =
      ClaimableCpus(policy, snapshot, places, machine, {.step = objects.step});
  KeepingAgent agent;
  const UnaryServer::Methods methods = agent::AgentService(agent);
  Tell(methods, "/cri_resmgr.v1.NodeReports/ShowTopology", TopologyReport(&view));
  Tell(methods, "/cri_resmgr.v1.NodeClaims/ShowDevices",
       DeviceReport(
           driver,
           dra::NodeDevices(driver, places, grantable, policy.held(), machine, objects.step), 1));
  objects.topology = agent::TopologyObject(kPublishedNode, "node-uid", agent.topology);
  objects.slices.push_back(agent::SliceObject(kPublishedNode, "node-uid", agent.devices, 1));
  return objects;
}

}  // namespace resmgr::test
