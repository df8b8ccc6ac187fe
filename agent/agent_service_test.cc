// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_service.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "agent/testing/topology_views.h"
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
  Status ShowTopology(std::optional<cri_resmgr::v1::ShowTopologyRequest> view) override {
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
  std::optional<cri_resmgr::v1::ShowTopologyRequest> shown;
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
  cri_resmgr::v1::TopologyZone& zone = AddZone(request, {10});
  zone.set_cpus("1-3");
  zone.set_exclusive("2");
  AddAmount(zone, "cpu", 8, 7, 5);
  AddPod(request, "default", "pod0");
  AddPool(request, "batch[0]", "1-2", "2");
  EXPECT_EQ(ShowTopology(request.SerializeAsString()), OkStatus());
  ASSERT_NE(handler_.shown, std::nullopt);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*handler_.shown, request));
}

TEST_F(AgentServiceTest, AnAbsentTopologyIsNone) {
  cri_resmgr::v1::ShowTopologyRequest request;
  request.set_absent(true);
  EXPECT_EQ(ShowTopology(request.SerializeAsString()), OkStatus());
  EXPECT_EQ(handler_.calls, 1);
  EXPECT_EQ(handler_.shown, std::nullopt);
}

TEST_F(AgentServiceTest, WhatIsNoTopologyIsRefused) {
  EXPECT_EQ(ShowTopology("\xff").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(handler_.calls, 0);
  handler_.answer = FailedPrecondition("not wanted");
  EXPECT_EQ(ShowTopology("").code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace resmgr::agent
