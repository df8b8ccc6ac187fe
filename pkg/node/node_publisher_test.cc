// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_publisher.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/api/agent.pb.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

using Annotations = std::map<std::string, std::string>;

const NodeReport kStatic{.policy = "static", .source = "agent"};
const NodeReport kCostly{.policy = "null",
                         .source = "agent",
                         .losses = "default/dsp/main (CPU 1, exclusive -> any CPU)"};
const NodeReport kOther{.policy = "topology-aware", .source = "/etc/cri-resmgr/x.yaml"};

Annotations ShownFor(const NodeReport& report) {
  return {{"/metadata/annotations/cri-resource-manager.intel.com~1policy", report.policy},
          {"/metadata/annotations/cri-resource-manager.intel.com~1policy-source", report.source},
          {"/metadata/annotations/cri-resource-manager.intel.com~1policy-losses", report.losses}};
}

class NodePublisherTest : public testing::Test {
 protected:
  // The values of a patch sent to the agent, by path.
  static Annotations Read(const std::string& message) {
    v1::PatchNodeRequest request;
    EXPECT_TRUE(request.ParseFromString(message));
    Annotations patches;
    for (const v1::JsonPatch& patch : request.patches()) {
      EXPECT_EQ(patch.op(), "add");
      const auto value = nlohmann::json::parse(patch.value());
      patches[patch.path()] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return patches;
  }

  // An agent with the answers of `health_` and, in turn, of `answers_`, then OK.
  void StartAgent() {
    auto server = UnaryServer::Create(
        loop_, flushes_, Socket(),
        {{"/v1.Agent/HealthCheck",
          [this](const std::string&, const UnaryServer::Reply& reply) {
            ++asked_;
            if (hangs_) return;
            v1::HealthCheckReply health;
            health.set_error(health_);
            reply(health.SerializeAsString());
          }},
         {"/v1.Agent/PatchNode", [this](const std::string& message, UnaryServer::Reply reply) {
            patches_.push_back(Read(message));
            if (held_) {
              pending_ = std::move(reply);
              return;
            }
            Status answer;
            if (!answers_.empty()) {
              answer = answers_.front();
              answers_.erase(answers_.begin());
            }
            reply(answer.ok() ? StatusOr<std::string>("") : answer);
          }}});
    ASSERT_TRUE(server.ok()) << Describe(server.status());
    agent_ = *std::move(server);
  }

  std::string Socket() const { return directory_.File("agent.sock"); }

  bool Patched(size_t times) {
    return RunUntil(loop_, [this, times] { return patches_.size() >= times; });
  }

  TempDir directory_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::string health_;
  bool hangs_ = false;
  bool held_ = false;
  std::vector<Status> answers_;
  int asked_ = 0;
  std::vector<Annotations> patches_;
  UnaryServer::Reply pending_;
  std::unique_ptr<UnaryServer> agent_;
  NodePublisher publisher_{loop_,
                           flushes_,
                           Socket(),
                           {.first_pause = milliseconds(1),
                            .longest_pause = milliseconds(4),
                            .timeout = milliseconds(200)}};
};

TEST_F(NodePublisherTest, TellsTheAgentWhatIsInForce) {
  StartAgent();
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(1));
  publisher_.Show(kCostly);
  ASSERT_TRUE(Patched(2));
  publisher_.Show(kOther);
  ASSERT_TRUE(Patched(3));
  EXPECT_THAT(patches_, ElementsAre(ShownFor(kStatic), ShownFor(kCostly), ShownFor(kOther)));
}

TEST_F(NodePublisherTest, WaitsForAnAgent) {
  publisher_.Show(kStatic);
  // Starts after several tries.
  const auto start = loop_.After(milliseconds(20), [this] { StartAgent(); });
  ASSERT_TRUE(Patched(1));
  EXPECT_THAT(patches_, ElementsAre(ShownFor(kStatic)));
}

TEST_F(NodePublisherTest, TellsTheNextAgentToo) {
  StartAgent();
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(1));
  agent_.reset();
  StartAgent();
  ASSERT_TRUE(Patched(2));
  EXPECT_EQ(patches_[1], ShownFor(kStatic));
}

TEST_F(NodePublisherTest, TellsTheLatestAfterWhatIsUnderWay) {
  StartAgent();
  held_ = true;
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(1));
  publisher_.Show({.policy = "null", .source = "x"});
  publisher_.Show(kOther);
  held_ = false;
  pending_("");
  ASSERT_TRUE(Patched(2));
  EXPECT_THAT(patches_, ElementsAre(ShownFor(kStatic), ShownFor(kOther)));
}

TEST_F(NodePublisherTest, SetsAllAnnotationsOfANodeThatHasNone) {
  StartAgent();
  answers_ = {InvalidArgument("the patch does not fit the node")};
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(2));
  ASSERT_EQ(patches_[1].size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(patches_[1].at("/metadata/annotations")),
            nlohmann::json({{"cri-resource-manager.intel.com/policy", "static"},
                            {"cri-resource-manager.intel.com/policy-source", "agent"},
                            {"cri-resource-manager.intel.com/policy-losses", ""}}));
}

TEST_F(NodePublisherTest, TriesAgainWhereTheAgentFails) {
  StartAgent();
  answers_ = {Unavailable("no API server"), Unavailable("no API server")};
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(3));
  EXPECT_THAT(patches_, testing::Each(ShownFor(kStatic)));
}

TEST_F(NodePublisherTest, TakesARefusalForAnAnswer) {
  StartAgent();
  answers_ = {MakeStatus(StatusCode::kPermissionDenied, "outside the allowed domains")};
  publisher_.Show(kStatic);
  // Another try would come after 1 ms.
  ASSERT_TRUE(
      RunUntil(loop_, [this, turns = 0]() mutable { return !patches_.empty() && ++turns > 20; }));
  publisher_.Show(kStatic);
  publisher_.Show(kOther);
  ASSERT_TRUE(Patched(2));
  EXPECT_THAT(patches_, ElementsAre(ShownFor(kStatic), ShownFor(kOther)));
}

// The agent itself wrote the node's first annotation in between, which must not be removed.
TEST_F(NodePublisherTest, AsksAgainWhereAnnotationsHaveComeMeanwhile) {
  StartAgent();
  answers_ = {InvalidArgument("the patch does not fit the node"),
              MakeStatus(StatusCode::kPermissionDenied, "config-status is not the daemon's")};
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(3));
  EXPECT_EQ(patches_[2], ShownFor(kStatic));
}

TEST_F(NodePublisherTest, GivesNothingToAnAgentThatIsNotWell) {
  StartAgent();
  health_ = "out of order";
  publisher_.Show(kStatic);
  ASSERT_TRUE(RunUntil(loop_, [this] { return asked_ >= 3; }));
  EXPECT_TRUE(patches_.empty());
  health_ = "";
  EXPECT_TRUE(Patched(1));
}

TEST_F(NodePublisherTest, LeavesAnAgentThatHangs) {
  StartAgent();
  hangs_ = true;
  publisher_.Show(kStatic);
  // The loop runs on meanwhile.
  int turns = 0;
  const auto count = loop_.Every(milliseconds(1), [&turns] { ++turns; });
  ASSERT_TRUE(RunUntil(loop_, [this] { return asked_ >= 2; }));
  EXPECT_GT(turns, 20);
  hangs_ = false;
  EXPECT_TRUE(Patched(1));
}

TEST_F(NodePublisherTest, EndsInTheMiddleOfACall) {
  StartAgent();
  held_ = true;
  {
    NodePublisher ending(loop_, flushes_, Socket());
    ending.Show(kOther);
    ASSERT_TRUE(Patched(1));
  }
  held_ = false;
  publisher_.Show(kStatic);
  ASSERT_TRUE(Patched(2));
  EXPECT_EQ(patches_[1], ShownFor(kStatic));
}

}  // namespace
}  // namespace resmgr
