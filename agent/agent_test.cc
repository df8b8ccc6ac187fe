// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <string>

#include <gtest/gtest.h>

#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {
namespace {

using std::chrono::seconds;

constexpr char kNodeObject[] = "/api/v1/nodes/n1";
constexpr char kNodeList[] = "/api/v1/nodes?";

// A daemon that never answers.
class SilentDaemon : public ConfigClient {
 public:
  void SetCallbacks(Callbacks /*callbacks*/) override {}
  void SetConfig(const std::map<std::string, std::string>& /*config*/, Done /*done*/) override {}
  bool TakeBack() override { return false; }
};

class AgentTest : public testing::Test {
 protected:
  AgentTest() { agent_.Start(); }

  // Sends a patch of an annotation as the daemon does.
  void Annotate(const std::string& key, const std::string& value) {
    agent_.PatchNode({{.op = "add",
                       .path = "/metadata/annotations/cri-resource-manager.intel.com~1" + key,
                       .value = JsonText(value)}},
                     [this](const Status& status) {
                       if (status.code() == StatusCode::kResourceExhausted) ++refused_;
                     });
  }
  // Counts requests about the node's object and answers them by an outage.
  int RequestsOfTheNode() {
    int requests = 0;
    while (transport_.Answer(kNodeObject, 503, Json::object()))
      ++requests;
    return requests;
  }

  // The node in the watch's events, at first in the answer to its list.
  static Json NodeWith(const std::string& policy) {
    return {{"metadata",
             {{"name", "n1"},
              {"resourceVersion", "7"},
              {"annotations", {{"cri-resource-manager.intel.com/policy", policy}}}}}};
  }
  void ListNode(const std::string& policy) {
    timers_.Advance(seconds(1));
    ASSERT_TRUE(transport_.Answer(
        kNodeList, 200,
        {{"metadata", {{"resourceVersion", "7"}}}, {"items", Json::array({NodeWith(policy)})}}));
  }
  void WatchNode(const std::string& policy) {
    ASSERT_TRUE(transport_.Stream(
        kNodeList, JsonText({{"type", "MODIFIED"}, {"object", NodeWith(policy)}}) + "\n"));
  }
  // Carries out a patch that is under way: its request reads the node first.
  void LetPatch(const std::string& policy) {
    ASSERT_TRUE(transport_.Answer(kNodeObject, 200, NodeWith(policy)));
    ASSERT_TRUE(transport_.Answer(kNodeObject, 200, Json::object()));
  }

  int refused_ = 0;  // patches, as too many
  FakeTransport transport_;
  ManualClock timers_;
  SilentDaemon daemon_;
  Agent agent_{{.node = "n1"}, transport_, timers_, daemon_};
};

TEST_F(AgentTest, PatchesWaitUntilTheNodeIsSeenOrFiveSecondsArePast) {
  Annotate("policy", "static");
  EXPECT_EQ(RequestsOfTheNode(), 0);
  timers_.Advance(seconds(6));
  EXPECT_EQ(RequestsOfTheNode(), 1);
}

// Each may be as long as a message to the agent, a megabyte.
TEST_F(AgentTest, PatchesThatWaitAreBoundedInBytes) {
  const std::string text(size_t{1} << 20, 'x');
  for (int i = 0; i < 3; ++i)
    Annotate("policy", text);
  EXPECT_EQ(RequestsOfTheNode(), 0);
  Annotate("policy", text);
  EXPECT_EQ(RequestsOfTheNode(), 4) << "at most 4 MiB are held";
}

TEST_F(AgentTest, PatchesThatWaitAreBoundedInNumber) {
  for (int i = 0; i < 256; ++i)
    Annotate("policy", "static");
  EXPECT_EQ(RequestsOfTheNode(), 0);
  Annotate("policy", "balloons");
  EXPECT_EQ(RequestsOfTheNode(), 257);
}

TEST_F(AgentTest, NoPatchOvertakesOneThatWaits) {
  for (int i = 0; i < 256; ++i)
    Annotate("policy", "static");
  Annotate("policy", "balloons");
  std::string last;
  for (int i = 0; i < 257; ++i) {
    ASSERT_TRUE(transport_.Answer(kNodeObject, 200, NodeWith("none")));
    last = transport_.Request(kNodeObject).body;
    ASSERT_TRUE(transport_.Answer(kNodeObject, 200, Json::object()));
  }
  EXPECT_THAT(last, testing::HasSubstr("balloons"));
}

TEST_F(AgentTest, PatchesInTheLineAreBoundedInNumberAndBytes) {
  timers_.Advance(seconds(6));
  for (int i = 0; i < 600; ++i)
    Annotate("policy", "static");
  EXPECT_EQ(refused_, 600 - 512);
  EXPECT_EQ(RequestsOfTheNode(), 512);
  for (int i = 0; i < 20; ++i)
    Annotate("policy", std::string(size_t{1} << 20, 'x'));
  EXPECT_EQ(refused_, 600 - 512 + 5);
  EXPECT_EQ(RequestsOfTheNode(), 15);
}

// A value that the node shows costs no request, unless it was overwritten since.
TEST_F(AgentTest, WhatTheNodeWasSeenToShowIsWrittenAgainAfterAnotherPatch) {
  ListNode("static");
  Annotate("policy", "static");
  EXPECT_FALSE(transport_.Has(kNodeObject));
  Annotate("policy", "null");
  LetPatch("static");
  // The watch is behind.
  Annotate("policy", "static");
  LetPatch("null");
  WatchNode("null");
  WatchNode("static");
  Annotate("policy", "static");
  EXPECT_FALSE(transport_.Has(kNodeObject));
}

// Each patch reads the node first, so one that meets a conflict could come after the next.
TEST_F(AgentTest, PatchesAreCarriedOutOneAfterTheOther) {
  ListNode("static");
  Annotate("policy", "null");
  Annotate("policy", "topology-aware");
  ASSERT_TRUE(transport_.Answer(kNodeObject, 200, NodeWith("static")));
  EXPECT_EQ(transport_.Request(kNodeObject).method, "PATCH");
  ASSERT_TRUE(transport_.Answer(kNodeObject, 409, Json::object()));
  LetPatch("static");
  EXPECT_EQ(transport_.Request(kNodeObject).method, "GET");
  ASSERT_TRUE(transport_.Answer(kNodeObject, 200, NodeWith("null")));
  EXPECT_NE(transport_.Request(kNodeObject).body.find("topology-aware"), std::string::npos);
}

// The daemon is told that the patch is done, so it does not ask again.
TEST_F(AgentTest, WhatTheNodeWasSeenToShowIsWrittenAgainWhileAnotherPatchIsUnderWay) {
  ListNode("static");
  Annotate("policy", "null");
  Annotate("policy", "static");
  EXPECT_EQ(RequestsOfTheNode(), 2);
}

}  // namespace
}  // namespace resmgr::agent
