// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_service.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/node_claims.pb.h"
#include "pkg/api/node_reports.pb.h"

namespace resmgr::agent {
namespace {

// Records the views that it gets, and answers as the test says.
class NotingHandler final : public AgentHandler {
 public:
  void GetNode(TextDone done) override { done(Unimplemented("no node")); }
  void PatchNode(std::vector<PatchOperation> /*operations*/, Done done) override {
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
    ++calls;
    shown = std::move(view);
    return answer;
  }
  void GetClaim(const std::string& namespace_name, const std::string& name,
                TextDone done) override {
    if (namespace_name == "slow") return done(DeadlineExceeded("API server: no reply in time"));
    done(namespace_name == "default" ? StatusOr<std::string>("{\"name\": \"" + name + "\"}")
                                     : NotFound("no claim"));
  }
  Status ShowDevices(std::optional<ShowDevicesRequest> report) override {
    ++calls;
    devices = std::move(report);
    return answer;
  }
  std::string Pool() const override { return "worker-1"; }

  int calls = 0;
  std::optional<ShowDevicesRequest> devices;
  std::optional<SchedulerView> shown;
  Status answer;
};

class AgentServiceTest : public testing::Test {
 protected:
  Status ShowTopology(const std::string& message) {
    Status status = Internal("no answer");
    methods_.at("/cri_resmgr.v1.NodeReports/ShowTopology")(
        message, [&status](const StatusOr<std::string>& reply) { status = reply.status(); });
    return status;
  }

  StatusOr<std::string> Call(const std::string& method, const std::string& message) {
    StatusOr<std::string> result = Internal("no answer");
    methods_.at("/cri_resmgr.v1.NodeClaims/" + method)(
        message, [&result](StatusOr<std::string> reply) { result = std::move(reply); });
    return result;
  }

  NotingHandler handler_;
  UnaryServer::Methods methods_ = AgentService(handler_);
};

TEST_F(AgentServiceTest, AClaimIsTheObjectOrTheReason) {
  cri_resmgr::v1::GetClaimRequest request;
  request.set_claim_namespace("default");
  request.set_claim("c");
  const auto reply = Call("GetClaim", request.SerializeAsString());
  ASSERT_TRUE(reply.ok()) << reply.status();
  cri_resmgr::v1::GetClaimReply answer;
  ASSERT_TRUE(answer.ParseFromString(*reply));
  EXPECT_EQ(answer.claim(), "{\"name\": \"c\"}");
  request.set_claim_namespace("other");
  EXPECT_EQ(Call("GetClaim", request.SerializeAsString()).status().code(), StatusCode::kNotFound);
  // To the daemon it is not the agent that is late.
  request.set_claim_namespace("slow");
  const Status late = Call("GetClaim", request.SerializeAsString()).status();
  EXPECT_EQ(late, Unavailable("API server: no reply in time"));
  EXPECT_EQ(Call("GetClaim", "\xff").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(AgentServiceTest, DevicesAreThoseOfTheDaemon) {
  cri_resmgr::v1::ShowDevicesRequest request;
  request.set_driver("dra.cpu");
  request.add_devices()->add_attributes()->set_number(3);
  const auto reply = Call("ShowDevices", request.SerializeAsString());
  ASSERT_TRUE(reply.ok()) << reply.status();
  cri_resmgr::v1::ShowDevicesReply answer;
  ASSERT_TRUE(answer.ParseFromString(*reply));
  EXPECT_EQ(answer.pool(), "worker-1");
  ASSERT_TRUE(handler_.devices);
  EXPECT_EQ(handler_.devices->DebugString(), request.DebugString());
  request.set_absent(true);
  EXPECT_TRUE(Call("ShowDevices", request.SerializeAsString()).ok());
  EXPECT_FALSE(handler_.devices);
  handler_.answer = FailedPrecondition("not wanted");
  EXPECT_EQ(Call("ShowDevices", request.SerializeAsString()).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(AgentServiceTest, ATopologyIsTheViewOfTheDaemon) {
  cri_resmgr::v1::ShowTopologyRequest request;
  request.set_refuses(true);
  cri_resmgr::v1::TopologyZone& zone = *request.add_zones();
  zone.set_numa_id(2);
  zone.add_distances(10);
  zone.set_cpus("1-3");
  zone.set_exclusive("2");
  cri_resmgr::v1::TopologyAmount& amount = *zone.add_amounts();
  amount.set_name("cpu");
  amount.set_capacity(8);
  amount.set_allocatable(7);
  amount.set_available(5);
  cri_resmgr::v1::TopologyPod& pod = *request.add_pods();
  pod.set_pod_namespace("default");
  pod.set_pod("pod0");
  cri_resmgr::v1::TopologyPool& pool = *request.add_pools();
  pool.set_name("batch[0]");
  pool.set_cpus("1-2");
  pool.set_exclusive("2");
  EXPECT_EQ(ShowTopology(request.SerializeAsString()), OkStatus());
  SchedulerView expected;
  expected.refuses = true;
  expected.zones = {{.numa_id = 2,
                     .distances = {10},
                     .amounts = {{.name = "cpu", .capacity = 8, .allocatable = 7, .available = 5}},
                     .cpus = CpuSet{1, 2, 3},
                     .exclusive = CpuSet{2}}};
  expected.pods = {{"default", "pod0"}};
  expected.pools = {{.name = "batch[0]", .cpus = {1, 2}, .exclusive = {2}}};
  ASSERT_NE(handler_.shown, std::nullopt);
  EXPECT_TRUE(handler_.shown->SameContent(expected));
}

TEST_F(AgentServiceTest, AnAbsentTopologyIsNone) {
  cri_resmgr::v1::ShowTopologyRequest request;
  request.set_absent(true);
  EXPECT_EQ(ShowTopology(request.SerializeAsString()), OkStatus());
  EXPECT_EQ(handler_.calls, 1);
  EXPECT_EQ(handler_.shown, std::nullopt);
}

TEST_F(AgentServiceTest, WhatIsNoTopologyIsRefused) {
  cri_resmgr::v1::ShowTopologyRequest request;
  request.add_zones()->set_cpus("1-x");
  EXPECT_EQ(ShowTopology(request.SerializeAsString()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ShowTopology("\xff").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(handler_.calls, 0);
  handler_.answer = FailedPrecondition("not wanted");
  request.Clear();
  EXPECT_EQ(ShowTopology(request.SerializeAsString()).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace resmgr::agent
