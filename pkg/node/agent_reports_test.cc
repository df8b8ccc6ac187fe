// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_reports.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/api/agent.pb.h"
#include "pkg/api/node_reports.pb.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/node/reported.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::SizeIs;

class AgentTest : public testing::Test {
 protected:
  void Serve(UnaryServer::Methods methods) {
    agent_.reset();
    auto server = UnaryServer::Create(loop_, flushes_, Socket(), std::move(methods));
    ASSERT_TRUE(server.ok()) << Describe(server.status());
    agent_ = *std::move(server);
  }
  void Answer(const UnaryServer::Reply& reply, const std::string& message = "") {
    if (hangs_) return;
    Status answer;
    if (!answers_.empty()) {
      answer = answers_.front();
      answers_.erase(answers_.begin());
    }
    reply(answer.ok() ? StatusOr<std::string>(message) : answer);
  }
  std::string Socket() const { return directory_.File("agent.sock"); }

  TempDir directory_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  bool hangs_ = false;
  std::vector<Status> answers_;  // of the agent, in turn, then OK
  std::unique_ptr<UnaryServer> agent_;
};

class AgentReportsTest : public AgentTest {
 protected:
  // Calls without an answer are given up after `timeout`; a busy machine may answer late.
  explicit AgentReportsTest(milliseconds timeout = seconds(30)) : timeout_(timeout) {}

  // An agent with the answers of `answers_` in turn, then OK.
  void StartAgent() {
    Serve({{"/cri_resmgr.v1.NodeReports/ShowCpus",
            [this](const std::string& message, const UnaryServer::Reply& reply) {
              cri_resmgr::v1::ShowCpusRequest request;
              EXPECT_TRUE(request.ParseFromString(message));
              shown_.push_back(request.cpus());
              Answer(reply);
            }},
           {"/cri_resmgr.v1.NodeReports/ShowTopology",
            [this](const std::string& message, const UnaryServer::Reply& reply) {
              topologies_.push_back(message);
              Answer(reply);
            }},
           {"/cri_resmgr.v1.NodeReports/AddPodEvents",
            [this](const std::string& message, const UnaryServer::Reply& reply) {
              cri_resmgr::v1::AddPodEventsRequest request;
              EXPECT_TRUE(request.ParseFromString(message));
              calls_.push_back(request.events_size());
              for (const cri_resmgr::v1::PodEvent& event : request.events())
                events_.push_back(fmt::format("{} {}", event.pod(), event.count()));
              cri_resmgr::v1::AddPodEventsReply answer;
              answer.set_dropped(dropped_);
              Answer(reply, answer.SerializeAsString());
            }}});
  }
  // Adds a refusal of that pod, `ago` before now.
  void Refuse(const std::string& pod, seconds ago = seconds(0)) {
    PodEvent event =
        NodeEvent(true, "CPURefused", "no room", std::chrono::system_clock::now() - ago);
    event.set_pod_namespace("team");
    event.set_pod(pod);
    event.set_uid("uid-" + pod);
    reports_.Add(std::move(event));
  }
  bool Told(size_t events) {
    return RunUntil(loop_, [this, events] { return events_.size() >= events; });
  }
  bool Shown(size_t times) {
    return RunUntil(loop_, [this, times] { return shown_.size() >= times; });
  }

  const milliseconds timeout_;
  std::vector<std::string> shown_;
  std::vector<std::string> topologies_;
  std::vector<std::string> events_;  // received ones, as "pod count"
  std::vector<int> calls_;           // number of events in each call
  uint64_t dropped_ = 0;
  size_t taken_ = 0;
  size_t lost_ = 0;
  AgentReports reports_{loop_,
                        flushes_,
                        Socket(),
                        {.times = {.first_pause = milliseconds(1),
                                   .longest_pause = milliseconds(4),
                                   .timeout = timeout_},
                         .most_events = 100,
                         .on_events = [this](size_t taken, size_t lost) {
                           taken_ += taken;
                           lost_ += lost;
                         }}};
};

// Calls without an answer are given up soon.
class HungAgentReportsTest : public AgentReportsTest {
 protected:
  HungAgentReportsTest() : AgentReportsTest(milliseconds(200)) {}
};

TEST_F(AgentReportsTest, TellsTheAgentWhatHasChanged) {
  StartAgent();
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(1));
  reports_.ShowCpus("one");
  RunFor(loop_, milliseconds(20));
  reports_.ShowCpus("two");
  ASSERT_TRUE(Shown(2));
  EXPECT_THAT(shown_, ElementsAre("one", "two"));
}

TEST_F(AgentReportsTest, WaitsForAnAgentAndTellsItTheLatest) {
  reports_.ShowCpus("one");
  RunFor(loop_, milliseconds(20));
  reports_.ShowCpus("two");
  StartAgent();
  ASSERT_TRUE(Shown(1));
  EXPECT_THAT(shown_, ElementsAre("two"));
}

TEST_F(AgentReportsTest, TellsTheNextAgentToo) {
  StartAgent();
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(1));
  StartAgent();
  ASSERT_TRUE(Shown(2));
  EXPECT_THAT(shown_, ElementsAre("one", "one"));
}

TEST_F(AgentReportsTest, TriesAgainWhereTheAgentFails) {
  StartAgent();
  answers_ = {Unavailable("overloaded"), Unavailable("overloaded")};
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(3));
  EXPECT_THAT(shown_, ElementsAre("one", "one", "one"));
}

TEST_F(HungAgentReportsTest, LeavesAnAgentThatHangs) {
  StartAgent();
  hangs_ = true;
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(2)) << "by another connection";
  hangs_ = false;
  reports_.ShowCpus("two");
  EXPECT_TRUE(RunUntil(loop_, [this] { return shown_.back() == "two"; }));
}

TEST_F(AgentReportsTest, TakesARefusalForAnAnswer) {
  StartAgent();
  answers_ = {FailedPrecondition("-node-reports does not name cpus")};
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(1));
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(shown_, SizeIs(1));
}

// An agent from before its upgrade, which ends the connection.
TEST_F(AgentReportsTest, AnAgentThatDoesNotKnowTheServiceIsAskedOnce) {
  Serve({});
  reports_.ShowCpus("one");
  RunFor(loop_, milliseconds(20));
  StartAgent();
  ASSERT_TRUE(Shown(1));
  EXPECT_THAT(shown_, ElementsAre("one"));
}

TEST_F(AgentReportsTest, SchedulersAreToldTheLatest) {
  reports_.ShowTopology("a");
  reports_.ShowTopology("b");
  StartAgent();
  ASSERT_TRUE(RunUntil(loop_, [this] { return !topologies_.empty(); }));
  EXPECT_THAT(topologies_, ElementsAre("b"));
  reports_.ShowTopology("b");
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(topologies_, SizeIs(1));
  StartAgent();
  EXPECT_TRUE(RunUntil(loop_, [this] { return topologies_.size() == 2; })) << "another agent";
}

// An agent that refuses the call, or does not know it yet.
TEST_F(AgentReportsTest, AnAgentThatTakesNoTopologyIsAskedOnce) {
  StartAgent();
  answers_ = {FailedPrecondition("-node-reports does not name topology")};
  reports_.ShowTopology("a");
  ASSERT_TRUE(RunUntil(loop_, [this] { return !topologies_.empty(); }));
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(1)) << "the CPUs are shown all the same";
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(topologies_, SizeIs(1));
}

TEST_F(AgentReportsTest, EventsOfOneTurnAreOneCall) {
  StartAgent();
  reports_.ShowCpus("one");
  Refuse("a");
  Refuse("b");
  Refuse("a");
  ASSERT_TRUE(Told(2));
  EXPECT_THAT(events_, ElementsAre("a 2", "b 1"));
  EXPECT_THAT(shown_, ElementsAre("one"));
  EXPECT_THAT(calls_, ElementsAre(2));
  EXPECT_TRUE(RunUntil(loop_, [this] { return taken_ == 2; }));
  EXPECT_EQ(lost_, 0U);
}

TEST_F(AgentReportsTest, EventsWaitForAnAgentWithinBounds) {
  for (int i = 0; i < 1000; ++i)
    Refuse(fmt::format("p{}", i));
  EXPECT_EQ(lost_, 900U);
  StartAgent();
  ASSERT_TRUE(Told(100));
  EXPECT_EQ(events_.front(), "p900 1") << "the oldest ones are lost";
  EXPECT_EQ(events_.back(), "p999 1");
  EXPECT_THAT(calls_, ElementsAre(32, 32, 32, 4));
}

TEST_F(AgentReportsTest, OldEventsAreNoNews) {
  Refuse("old", std::chrono::minutes(11));
  Refuse("new");
  StartAgent();
  ASSERT_TRUE(Told(1));
  EXPECT_THAT(events_, ElementsAre("new 1"));
  EXPECT_EQ(lost_, 1U);
}

TEST_F(AgentReportsTest, WhatTheAgentDropsIsCounted) {
  StartAgent();
  dropped_ = 1;
  Refuse("a");
  Refuse("b");
  ASSERT_TRUE(Told(2));
  EXPECT_TRUE(RunUntil(loop_, [this] { return taken_ == 1 && lost_ == 1; }));
}

TEST_F(HungAgentReportsTest, EventsOutliveACallWithoutAnAnswer) {
  StartAgent();
  hangs_ = true;
  Refuse("a");
  ASSERT_TRUE(Told(1));
  Refuse("b");
  hangs_ = false;
  ASSERT_TRUE(Told(3));
  EXPECT_THAT(events_, ElementsAre("a 1", "a 1", "b 1")) << "whether the agent took it is unknown";
}

TEST_F(AgentReportsTest, AnAgentThatTakesNoEventsIsAskedOnce) {
  StartAgent();
  answers_ = {FailedPrecondition("-node-reports does not name pod-events")};
  Refuse("a");
  ASSERT_TRUE(Told(1));
  RunFor(loop_, milliseconds(20));
  Refuse("b");
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(1)) << "the CPUs are shown all the same";
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(events_, SizeIs(1));
  EXPECT_EQ(lost_, 0U);
  // Another agent may accept them.
  StartAgent();
  ASSERT_TRUE(Shown(2));
  Refuse("c");
  ASSERT_TRUE(Told(2));
  EXPECT_EQ(events_.back(), "c 1");
}

TEST_F(AgentReportsTest, EndsInTheMiddleOfACall) {
  StartAgent();
  hangs_ = true;
  {
    AgentReports ending(loop_, flushes_, Socket());
    ending.ShowCpus("x");
    ASSERT_TRUE(Shown(1));
  }
  hangs_ = false;
  reports_.ShowCpus("one");
  ASSERT_TRUE(Shown(2));
  EXPECT_EQ(shown_.back(), "one");
}

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

class NodePublisherTest : public AgentTest {
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
    Serve({{"/v1.Agent/HealthCheck",
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
              Answer(reply);
            }}});
  }

  bool Patched(size_t times) {
    return RunUntil(loop_, [this, times] { return patches_.size() >= times; });
  }

  std::string health_;
  bool held_ = false;
  int asked_ = 0;
  std::vector<Annotations> patches_;
  UnaryServer::Reply pending_;
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

// The agent passes the API server's refusal on, and one that has just started refuses everything.
TEST_F(NodePublisherTest, TriesARefusalAgainLaterAndTellsItOnce) {
  StartAgent();
  const Status refusal =
      MakeStatus(StatusCode::kPermissionDenied, "the API server answers 403: no roles yet");
  answers_ = {refusal, refusal};
  testing::internal::CaptureStderr();
  NodePublisher patient(loop_, flushes_, Socket(), {}, milliseconds(20));
  patient.Show(kStatic);
  const bool patched = Patched(3);
  RunFor(loop_, milliseconds(60));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(patched);
  EXPECT_THAT(patches_, ElementsAre(ShownFor(kStatic), ShownFor(kStatic), ShownFor(kStatic)));
  EXPECT_NE(log.find("no roles yet"), std::string::npos) << log;
  EXPECT_EQ(log.find("no roles yet"), log.rfind("no roles yet")) << log;
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
