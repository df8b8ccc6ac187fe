// SPDX-License-Identifier: Apache-2.0
// The number of one agent's requests, counted at the API server: a cluster has thousands of agents.
#include <algorithm>
#include <functional>
#include <string>

#include "test/integration/agent/agent_fixture.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// The number that a token bucket lets through at once; then it is one in a second.
constexpr int kBurst = 10;

class AgentLoadTest : public AgentTest {
 protected:
  using Match = std::function<bool(const ApiServer::Request& request)>;

  int Count(const Match& match) const {
    const auto requests = api_.Requests();
    return static_cast<int>(std::ranges::count_if(requests, match));
  }
  int Writes() const {
    return Count([](const ApiServer::Request& request) { return request.method != "GET"; });
  }
  int Patches() const {
    return Count([](const ApiServer::Request& request) {
      return request.method == "PATCH" && request.path.starts_with(ApiServer::kNodes);
    });
  }
  int Lists() const {
    return Count([](const ApiServer::Request& request) {
      return request.method == "GET" && !request.IsWatch();
    });
  }
};

TEST_F(AgentLoadTest, AFlappingMapMakesFewReportsAndOneEvent) {
  const auto start = std::chrono::steady_clock::now();
  StartAll();
  for (int i = 0; i < 300; ++i) {
    const std::string policy = (i % 2 == 0 ? FakeConfigService::kBad : "good ") + std::to_string(i);
    SetPolicy(kNodeMap, policy);
    ASSERT_TRUE(DaemonGets(policy)) << AgentLog();
  }
  SetPolicy(kNodeMap, "bad: the last word");
  ASSERT_TRUE(Eventually([this] { return api_.Annotation(kNode, kError) == "the last word"; }))
      << AgentLog();
  const auto lasted = std::chrono::ceil<seconds>(std::chrono::steady_clock::now() - start);
  EXPECT_LE(Patches(), kBurst + lasted.count());
  EXPECT_LT(Patches(), 150) << "of 300 changes";
  ASSERT_TRUE(Eventually([this] { return !api_.Events().empty(); }));
  EXPECT_EQ(api_.Events().size(), 1u) << "one Event with a growing count";
}

TEST_F(AgentLoadTest, ARestartOfTheAgentWritesNothing) {
  SetPolicy(kDefaultMap, "bad: as before");
  daemon_.Start();
  StartAgent();
  ASSERT_TRUE(NodeSays(kStatus, "rejected")) << AgentLog();
  ASSERT_TRUE(Eventually([this] { return api_.Events().size() == 1; }));
  ASSERT_TRUE(IsWatching(3));
  const int writes = Writes();
  StartAgent();
  ASSERT_TRUE(Eventually([this] { return daemon_.received().size() == 2; })) << AgentLog();
  ASSERT_TRUE(IsWatching(3));
  // The next report comes after all reports of the start.
  SetPolicy(kNodeMap, "good");
  ASSERT_TRUE(NodeSays(kStatus, "accepted"));
  EXPECT_EQ(Writes(), writes + 1);
}

TEST_F(AgentLoadTest, AnAcceptedConfigurationIsNoEvent) {
  StartAll();
  ASSERT_TRUE(NodeSays(kStatus, "accepted")) << AgentLog();
  SetPolicy(kNodeMap, "bad: no");
  ASSERT_TRUE(Eventually([this] { return !api_.Events().empty(); }));
  EXPECT_EQ(api_.Events().size(), 1u);
  EXPECT_THAT(api_.Events()[0]["reason"].get<std::string>(), HasSubstr("Rejected"));
}

// A server that comes back serves lists at a cost that a watch from the last version does not have.
TEST_F(AgentLoadTest, AnOutageCostsNoList) {
  StartAll();
  const int lists = Lists();
  api_.Stop();
  // Several tries in vain of each watch.
  ASSERT_TRUE(Eventually([this] { return AgentLog().find("trying again") != std::string::npos; }));
  const auto later = std::chrono::steady_clock::now() + seconds(3);
  ASSERT_TRUE(Eventually([&] { return std::chrono::steady_clock::now() >= later; }));
  SetPolicy(kDefaultMap, "meanwhile");
  ASSERT_TRUE(api_.Start().ok());
  ASSERT_TRUE(DaemonGets("meanwhile")) << AgentLog();
  ASSERT_TRUE(IsWatching(3));
  EXPECT_EQ(Lists(), lists);
}

TEST_F(AgentLoadTest, ListsAreServedFromTheServersCache) {
  StartAll();
  for (const ApiServer::Request& request : api_.Requests()) {
    if (request.method != "GET" || request.IsWatch()) continue;
    const auto version = request.query.find("resourceVersion");
    ASSERT_NE(version, request.query.end()) << request.path;
    EXPECT_EQ(version->second, "0");
  }
}

// A node's status is long and changes all the time; labels and annotations are enough.
TEST_F(AgentLoadTest, TheNodeComesWithItsMetadataAlone) {
  StartAll();
  int requests = 0;
  for (const ApiServer::Request& request : api_.Requests()) {
    if (request.path != ApiServer::kNodes) continue;
    ++requests;
    EXPECT_THAT(request.accept, HasSubstr("as=PartialObjectMetadata"));
  }
  EXPECT_EQ(requests, 2);
}

TEST_F(AgentLoadTest, ASharedMapIsReportedLaterThanANodesOwn) {
  SetPolicy(kDefaultMap, "first");
  daemon_.Start();
  StartAgent({"-report-spread=1h"});
  ASSERT_TRUE(NodeSays(kStatus, "accepted"))
      << AgentLog() << "what a new node has to say is urgent";
  SetPolicy(kDefaultMap, "bad: everywhere");
  ASSERT_TRUE(DaemonGets("bad: everywhere"));
  EXPECT_EQ(api_.Annotation(kNode, kStatus), "accepted");
  SetPolicy(kNodeMap, "bad: here");
  EXPECT_TRUE(Eventually([this] { return api_.Annotation(kNode, kError) == "here"; }))
      << AgentLog();
}

}  // namespace
}  // namespace resmgr::test
