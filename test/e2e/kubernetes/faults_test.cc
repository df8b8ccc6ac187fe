// SPDX-License-Identifier: Apache-2.0
// Faults of a real API server that the agent survives.
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "test/e2e/kubernetes/kubernetes_fixture.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr char kMapOfTheNode[] = "fieldSelector=metadata.name%3Dcri-resmgr-config.default";

// How the agent has asked for the default map, in order: "list" and "watch", each once.
std::vector<std::string> Asked(const Cluster& cluster, size_t since) {
  std::vector<std::string> verbs;
  std::set<std::string> known;
  const std::vector<Json> entries = cluster.Audit();
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_new = known.insert(agent::TextAt(entries[i], {"auditID"})).second;
    if (i < since || !is_new) continue;
    if (agent::TextAt(entries[i], {"requestURI"}).find(kMapOfTheNode) == std::string::npos)
      continue;
    verbs.push_back(agent::TextAt(entries[i], {"verb"}));
  }
  return verbs;
}

TEST_F(KubernetesTest, AgentOutlivesItsApiServer) {
  Apply(kDefaultMap, Cluster::Policy() + " # before");
  ASSERT_THAT(cluster_->RestartApiServer(), IsOk());
  Apply(kDefaultMap, Cluster::Policy() + " # after");
  ASSERT_THAT(cluster_->RestartRelay(), IsOk());
  ASSERT_THAT(cluster_->RestartAgent(), IsOk());
  Apply(kDefaultMap, Cluster::Policy() + " # with another agent");
}

TEST_F(KubernetesTest, AgentConvergesThoughItIsCutOffAHundredTimes) {
  constexpr unsigned kSeed = 20'261'121;
  std::mt19937 random(kSeed);
  int64_t memory = 0;
  int cuts = 0;
  for (int round = 0; cuts < 100; ++round) {
    const auto version =
        cluster_->SetMap(kDefaultMap, fmt::format("{} # {}", Cluster::Policy(), round));
    ASSERT_THAT(version, IsOk());
    // Sometimes the next cut comes before the agent has noticed this one.
    if (random() % 3 != 0) {
      ASSERT_THAT(cluster_->WaitForVerdict(kDefaultMap, *version, "accepted"), IsOk())
          << "seed " << kSeed << ", cut off " << cuts << " times";
    }
    if (cluster_->CutAgent() > 0) ++cuts;
    if (round < 20) memory = cluster_->AgentMemory();
  }
  Apply(kDefaultMap, Cluster::Policy() + " # the end");
  EXPECT_LT(cluster_->AgentMemory(), memory + 20 * 1024) << "KiB; was " << memory;
}

// 410 Gone: the API server no longer has what happened meanwhile.
TEST_F(KubernetesTest, AgentListsAnewWhatEtcdHasForgotten) {
  Apply(kDefaultMap, Cluster::Policy() + " # before");
  cluster_->StopAgent();
  // Its watches end without the agent's knowledge, so its first try is a watch from back then.
  ASSERT_THAT(cluster_->RestartApiServer(), IsOk());
  const auto version = cluster_->SetMap(kDefaultMap, Cluster::Policy() + " # meanwhile");
  ASSERT_THAT(version, IsOk());
  ASSERT_THAT(cluster_->CompactEtcd(), IsOk());
  const size_t before = cluster_->Audit().size();
  cluster_->ContinueAgent();
  EXPECT_THAT(cluster_->WaitForVerdict(kDefaultMap, *version, "accepted"), IsOk());
  EXPECT_THAT(Asked(*cluster_, before), testing::ElementsAre("watch", "list", "watch"));
}

TEST_F(KubernetesTest, AgentTakesTheTokenThatReplacesItsOwn) {
  const KubeClient old = cluster_->AsAgent();
  ASSERT_THAT(old.Get(Cluster::NodePath()), IsOk());
  ASSERT_THAT(cluster_->RotateAgentToken(), IsOk());
  // The new server does not know the clients.
  ASSERT_THAT(cluster_->RestartApiServer(), IsOk());
  EXPECT_EQ(old.Get(Cluster::NodePath()).status().code(), StatusCode::kPermissionDenied);
  Apply(kDefaultMap, Cluster::Policy() + " # by the new token");
}

TEST_F(KubernetesTest, AgentWaitsForATokenThatIsGood) {
  Apply(kDefaultMap, Cluster::Policy() + " # before");
  ASSERT_THAT(cluster_->RevokeAgentToken(), IsOk());
  ASSERT_THAT(cluster_->RestartApiServer(), IsOk());
  const auto version = cluster_->SetMap(kDefaultMap, Cluster::Policy() + " # after");
  ASSERT_THAT(version, IsOk());
  ASSERT_THAT(
      WaitUntil("the agent is refused", seconds(60),
                [] { return cluster_->AgentLog().find("Unauthorized") != std::string::npos; }),
      IsOk())
      << cluster_->AgentLog();
  EXPECT_NE(cluster_->Annotation("config-version"), *version);
  ASSERT_THAT(cluster_->RotateAgentToken(), IsOk());
  EXPECT_THAT(cluster_->WaitForVerdict(kDefaultMap, *version, "accepted"), IsOk());
}

}  // namespace
}  // namespace resmgr::test
