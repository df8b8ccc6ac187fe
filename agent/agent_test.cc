// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "agent/testing/fake_timers.h"
#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"

namespace resmgr::agent {
namespace {

using std::chrono::seconds;

constexpr char kNodeObject[] = "/api/v1/nodes/n1";

// A daemon that never answers.
class SilentDaemon : public ConfigClient {
 public:
  void SetCallbacks(Callbacks /*callbacks*/) override {}
  void SetConfig(const std::map<std::string, std::string>& /*config*/, Done /*done*/) override {}
};

class AgentTest : public testing::Test {
 protected:
  AgentTest() { agent_.Start(); }

  // What the daemon wants on the node.
  void Annotate(const std::string& key, const std::string& value) {
    agent_.PatchNode({{.op = "add",
                       .path = "/metadata/annotations/cri-resource-manager.intel.com~1" + key,
                       .value = JsonText(value)}},
                     [](const Status&) {});
  }
  // Requests about the node's object, which are then answered by an outage.
  int RequestsOfTheNode() {
    int requests = 0;
    while (transport_.Answer(kNodeObject, 503, Json::object()))
      ++requests;
    return requests;
  }

  FakeTransport transport_;
  FakeTimers timers_;
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
  for (int i = 0; i < 10; ++i)
    Annotate("policy", std::string(size_t{1} << 20, 'x'));
  EXPECT_EQ(RequestsOfTheNode(), 7) << "at most 4 MiB are held";
  timers_.Advance(seconds(6));
  EXPECT_EQ(RequestsOfTheNode(), 3);
}

TEST_F(AgentTest, PatchesThatWaitAreBoundedInNumber) {
  for (int i = 0; i < 300; ++i)
    Annotate("policy", "static");
  EXPECT_EQ(RequestsOfTheNode(), 300 - 256);
}

}  // namespace
}  // namespace resmgr::agent
