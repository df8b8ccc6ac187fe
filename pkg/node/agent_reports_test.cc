// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_reports.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/node_reports.pb.h"
#include "pkg/grpc/unary_server.h"
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

class AgentReportsTest : public testing::Test {
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
  // Adds a refusal of that pod, `ago` before now.
  void Refuse(const std::string& pod, seconds ago = seconds(0)) {
    reports_.Add({.pod_namespace = "team",
                  .pod = pod,
                  .uid = "uid-" + pod,
                  .warning = true,
                  .reason = "CPURefused",
                  .message = "no room",
                  .last = std::chrono::system_clock::now() - ago});
  }
  bool Told(size_t events) {
    return RunUntil(loop_, [this, events] { return events_.size() >= events; });
  }
  std::string Socket() const { return directory_.File("agent.sock"); }
  bool Shown(size_t times) {
    return RunUntil(loop_, [this, times] { return shown_.size() >= times; });
  }

  const milliseconds timeout_;
  TempDir directory_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  bool hangs_ = false;
  std::vector<Status> answers_;
  std::vector<std::string> shown_;
  std::vector<std::string> topologies_;
  std::vector<std::string> events_;  // received ones, as "pod count"
  std::vector<int> calls_;           // number of events in each call
  uint64_t dropped_ = 0;
  size_t taken_ = 0;
  size_t lost_ = 0;
  std::unique_ptr<UnaryServer> agent_;
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

}  // namespace
}  // namespace resmgr
