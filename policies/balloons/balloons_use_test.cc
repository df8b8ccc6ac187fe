// SPDX-License-Identifier: Apache-2.0
// Balloons that grow and shrink by what their containers use.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/allocator/want_of_room.h"
#include "pkg/policy/use_balance.h"
#include "policies/balloons/balloon_reason.h"
#include "policies/balloons/balloons_options.h"
#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using std::chrono::seconds;
using test::BalloonsNode;
using test::Cpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// On N4C16. Grows above 80 %, shrinks below 50 %, each 30 s.
constexpr std::string_view kSection = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- {name: web, followUse: {growAbove: 80}, preferNewBalloons: true}
- {name: small, followUse: {growAbove: 80}, maxCPUs: 2, preferNewBalloons: true}
- {name: near, preferNewBalloons: true, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: plain, preferNewBalloons: true}
)";

TEST(BalloonsUseTest, ABusyBalloonBorrowsIdleCpusNearIt) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  ASSERT_EQ(node.CpusOf(a), "6-7");
  EXPECT_TRUE(node.policy().FollowsUse());
  node.FollowUse({{a, 1.9}}, seconds(0));
  EXPECT_EQ(node.CpusOf(a), "5-7") << "by half of its CPUs at most";
  EXPECT_EQ(node.PlacementOf(a).reason,
            "type web by annotation; new balloon; by use CPUs 5; own CPUs 6-7");
  EXPECT_EQ(node.CpusOfBalloon("web[0]"), "5-7");
  EXPECT_THAT(node.policy().Explain(a),
              testing::Contains(HasSubstr("also has idle CPUs 5, by what its containers use")));
}

TEST(BalloonsUseTest, NothingChangesInTheDeadBandOrBeforeThePauseIsOver) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 4000, .type = "web"});
  EXPECT_TRUE(node.FollowUse({{a, 3.2}}, seconds(0)).empty()) << "80 %";
  EXPECT_TRUE(node.FollowUse({{a, 0.1}}, seconds(1)).empty()) << "requests are kept";
  node.FollowUse({{a, 3.6}}, seconds(10));
  ASSERT_EQ(node.SetOf(a).size(), 6) << "3.6 are 60 % of 6";
  EXPECT_TRUE(node.FollowUse({{a, 6.0}}, seconds(39)).empty()) << "29 s later";
  EXPECT_TRUE(node.FollowUse({{a, 3.0}}, seconds(100)).empty()) << "50 %";
  node.FollowUse({{a, 2.9}}, seconds(110));
  EXPECT_EQ(node.SetOf(a).size(), 5);
  EXPECT_TRUE(node.FollowUse({{a, 0.1}}, seconds(139)).empty());
  node.FollowUse({{a, 0.1}}, seconds(140));
  EXPECT_EQ(node.SetOf(a).size(), 4) << "never below what is requested";
  EXPECT_TRUE(node.FollowUse({{a, 0.1}}, seconds(200)).empty());
  // The clock was set back.
  node.FollowUse({{a, 4.0}}, seconds(-500));
  EXPECT_EQ(node.SetOf(a).size(), 6);
}

// Each list of what the runtime holds is taken over, at least once a minute.
TEST(BalloonsUseTest, AListDoesNotEndThePause) {
  BalloonsNode node("balloonTypes: [{name: web, followUse: {growAbove: 80, pause: 10m}}]");
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  node.FollowUse({{a, 2.0}}, seconds(0));
  ASSERT_EQ(node.SetOf(a).size(), 3);
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_TRUE(node.FollowUse({{a, 3.0}}, seconds(60)).empty());
  EXPECT_FALSE(node.FollowUse({{a, 3.0}}, seconds(600)).empty());
}

TEST(BalloonsUseTest, ConstantUseComesToRest) {
  for (const double used : {0.3, 0.85, 1.7, 3.1, 4.4, 7.9}) {
    BalloonsNode node(kSection);
    const ContainerKey a = *node.Run("a", {.request = 500, .type = "web"});
    int changes = 0;
    for (int i = 0; i < 40; ++i) {
      // A container cannot use more CPUs than it has.
      const double now = std::min(used, static_cast<double>(node.SetOf(a).size()));
      changes += node.FollowUse({{a, now}}, seconds(30 * i)).empty() ? 0 : 1;
      if (i >= 10) {
        EXPECT_LE(changes, 8) << used;
      }
    }
    EXPECT_TRUE(node.FollowUse({{a, used}}, seconds(5000)).empty()) << used;
    EXPECT_LE(used, 0.8 * node.SetOf(a).size() + 1e-9) << used;
  }
}

TEST(BalloonsUseTest, LimitsHold) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "small"});
  for (int i = 0; i < 5; ++i)
    node.FollowUse({{a, 2.0}}, seconds(30 * i));
  EXPECT_EQ(node.SetOf(a).size(), 2) << "maxCPUs";
  const ContainerKey plain = *node.Run("p", {.request = 1000, .type = "plain"});
  EXPECT_TRUE(node.FollowUse({{plain, 1.0}}, seconds(1000)).empty()) << "its type follows requests";
}

TEST(BalloonsUseTest, HiddenThreadsCountAsUsed) {
  BalloonsNode node(
      "balloonTypes: [{name: h, minCPUs: 4, hideHyperthreads: true, followUse: {growAbove: 80}}]");
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "h"});
  ASSERT_EQ(node.CpusOf(a), "0,2");
  EXPECT_TRUE(node.FollowUse({{a, 1.5}}, seconds(0)).empty()) << "75 % of two cores";
  node.FollowUse({{a, 2.0}}, seconds(30));
  EXPECT_EQ(node.CpusOf(a), "0,2,4");
}

TEST(BalloonsUseTest, RequestsComeBeforeUse) {
  BalloonsNode node(kSection, test::MakeMachine({.cores = 8}));
  const ContainerKey a = *node.Run("a", {.request = 1000, .type = "web"});
  for (int i = 0; i < 10; ++i)
    node.FollowUse({{a, 8.0}}, seconds(30 * i));
  ASSERT_EQ(node.SetOf(a).size(), 7) << "all but the reserved one";
  const ContainerKey p = *node.Run("p", {.request = 4000, .type = "plain"});
  EXPECT_EQ(node.SetOf(p).size(), 4);
  EXPECT_EQ(node.SetOf(a).size(), 3);
  EXPECT_FALSE(node.SetOf(a).Intersects(node.SetOf(p)));
  const ContainerKey q = *node.Run("q", {.request = 2000, .type = "plain"});
  EXPECT_EQ(node.SetOf(a).size(), 1);
  EXPECT_EQ(node.PlacementOf(a).reason.find("by use"), std::string::npos);
  EXPECT_FALSE(node.PlacementOf(q).reason.starts_with(kWantOfRoom));
  node.Remove(p);
  EXPECT_EQ(node.SetOf(a).size(), 1) << "what becomes free is lent by the next measurement";
}

TEST(BalloonsUseTest, UnlentCpusAreTakenFirstUnlessAHintSaysOtherwise) {
  BalloonsNode node(kSection);
  const ContainerKey w = *node.Run("w", {.request = 1000, .type = "web"});
  ASSERT_EQ(node.CpusOf(w), "5");
  node.FollowUse({{w, 1.0}}, seconds(0));
  ASSERT_EQ(node.CpusOf(w), "5-6");
  EXPECT_EQ(node.CpusAt("b", {.request = 1000, .type = "plain"}), "7") << "6 would be as near";
  EXPECT_EQ(node.CpusOf(w), "5-6");
  ASSERT_TRUE(node.Resize(w, 2000).ok());
  EXPECT_EQ(node.CpusOf(w), "5-6") << "what it borrowed is its own now";
  EXPECT_EQ(ReadReason(node.PlacementOf(w).reason).Own(), Cpus("5-6"));
}

TEST(BalloonsUseTest, AHintTakesBorrowedCpus) {
  BalloonsNode node(kSection);
  ASSERT_TRUE(node.Run("f", {.request = 11'000, .type = "plain"}).ok());
  const ContainerKey w = *node.Run("w", {.request = 500, .type = "web"});
  for (int i = 0; i < 3; ++i)
    node.FollowUse({{w, 3.0}}, seconds(30 * i));
  const CpuSet borrowed = ReadReason(node.PlacementOf(w).reason).borrowed;
  ASSERT_FALSE(borrowed.empty());
  const ContainerKey n = *node.Run("n", {.request = 1000, .type = "near"});
  EXPECT_TRUE(node.SetOf(n).IsSubsetOf(Cpus("0-3"))) << node.CpusOf(n);
  EXPECT_FALSE(node.SetOf(w).Intersects(node.SetOf(n)));
}

TEST(BalloonsUseTest, FewCpusGoToTheBusiest) {
  BalloonsNode node(kSection, test::MakeMachine({.cores = 10}));
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  const ContainerKey b = *node.Run("b", {.request = 4000, .type = "web"});
  ASSERT_TRUE(node.Run("p", {.request = 1000, .type = "plain"}).ok());
  node.FollowUse({{a, 2.0}, {b, 3.3}}, seconds(0));
  EXPECT_EQ(node.SetOf(a).size(), 3);
  EXPECT_EQ(node.SetOf(b).size(), 5);
  EXPECT_THAT(node.policy().Zones(node.snapshot()).back().name, testing::Ne("idle"));
}

TEST(BalloonsUseTest, WhatIsNotMeasuredIsNotGuessed) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  node.FollowUse({{a, 2.0}}, seconds(0));
  ASSERT_EQ(node.SetOf(a).size(), 3);
  ASSERT_TRUE(node.CreateIn(a, "b", 0).ok());
  EXPECT_TRUE(node.FollowUse({{a, 0.1}}, seconds(60)).empty()) << "b began to run just now";
  EXPECT_TRUE(node.FollowUse({}, seconds(120)).empty());
}

TEST(BalloonsUseTest, ARestartMovesNothing) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  const ContainerKey b = *node.Run("b", {.request = 1000, .type = "web"});
  node.FollowUse({{a, 2.0}, {b, 1.0}}, seconds(0));
  node.FollowUse({{a, 3.0}, {b, 2.0}}, seconds(30));
  ASSERT_GT(node.SetOf(a).size(), 3);
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_EQ(node.CpusOfBalloon("web[0]"), node.CpusOf(a));
  const std::string before = node.CpusOf(a) + " " + node.CpusOf(b);
  node.ForgetDecisions();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(a) + " " + node.CpusOf(b), before) << "without state, too";
  node.ChangeSection("balloonTypes: [{name: web, preferNewBalloons: true}]");
  node.Reconcile();
  EXPECT_EQ(node.SetOf(a).size(), 2) << "the type does not follow use any more";
}

TEST(BalloonsUseTest, ACloneThatFollowsChangesNothingHere) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  policy::MeasuredUse use;
  use.containers[a].cpus = 2;
  const std::unique_ptr<Policy> clone = node.policy().Clone();
  EXPECT_FALSE(clone->FollowUse(node.snapshot(), use)->empty());
  EXPECT_EQ(node.CpusOfBalloon("web[0]"), "6-7");
}

TEST(BalloonsUseTest, TheSameMeasurementsGiveTheSameResult) {
  std::vector<std::string> results;
  for (int run = 0; run < 2; ++run) {
    BalloonsNode node(kSection);
    std::map<ContainerKey, double> use;
    for (int i = 0; i < 5; ++i)
      use[*node.Run(fmt::format("c{}", i), {.request = 300 * i, .type = "web"})] = 0.4 * i;
    std::string text;
    for (int i = 0; i < 6; ++i) {
      for (auto& [key, cpus] : use)
        cpus = static_cast<double>(i * 7 % 5 + 1) * cpus / 3;
      node.FollowUse(use, seconds(30 * i));
      for (const auto& [key, cpus] : use)
        text += node.CpusOf(key) + " ";
    }
    results.push_back(text);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(BalloonsUseTest, BoundsThatContradictAreRefused) {
  const auto error = [](std::string_view keys) {
    return std::string(Message(
        test::CreateError(BalloonsPolicyFactory(), test::N4C16(), "0",
                          fmt::format("balloonTypes: [{{name: y}}, {{name: x, {}}}]", keys))));
  };
  EXPECT_EQ(error("followUse: {GROWABOVE: 70, shrinkbelow: 40, pause: 1m}"), "");
  EXPECT_THAT(error("followUse: {growAbove: 40}"), HasSubstr("is 50, not less than growAbove 40"));
  EXPECT_THAT(error("followUse: {growAbov: 40}"), HasSubstr("growAbove"));
  EXPECT_THAT(error("components: [{balloonType: y}], followUse: {growAbove: 80}"),
              HasSubstr("no meaning beside components"));
}

// x[0] has no idle CPU in its package, whatever it uses.
TEST(BalloonsUseTest, IdleCpusGoToABalloonThatMayHaveThem) {
  BalloonsNode node(
      "balloonTypes: [{name: fixed, cpus: \"6-7\"}, {name: x, minCPUs: 1, instances: 1 per "
      "package, "
      "followUse: {growAbove: 80}}]",
      test::MakeMachine({.packages = 2, .cores = 4}));
  const ContainerKey a = *node.Run("a", {.request = 4000, .type = "x"});
  const ContainerKey b = *node.Run("b", {.request = 500, .type = "x"});
  ASSERT_EQ(node.CpusOf(a), "0-3");
  ASSERT_EQ(node.SetOf(b).size(), 1);
  node.FollowUse({{a, 4.0}, {b, 0.95}}, seconds(0));
  EXPECT_EQ(node.CpusOf(b), "4-5");
}

// All of its containers are of another type now.
TEST(BalloonsUseTest, BalloonWithGuestsAloneKeepsWhatItBorrowsOverARestart) {
  BalloonsNode node(
      "balloonTypes: [{name: web, followUse: {growAbove: 80}}, {name: o, maxCPUs: 1}, {name: g}]",
      test::MakeMachine({.cores = 2}));
  const ContainerKey web = *node.Run("web", {.request = 100, .type = "web"});
  const ContainerKey other = *node.Run("o", {.request = 950, .type = "o"});
  const ContainerKey guest = *node.Run("g", {.request = 100, .type = "g"});
  ASSERT_EQ(node.PoolOf(guest), "web[0]");
  node.Remove(other);
  node.FollowUse({{web, 0.5}, {guest, 0.45}}, seconds(0));
  node.Remove(web);
  ASSERT_EQ(node.CpusOf(guest), "0-1");
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
}

TEST(BalloonsUseTest, WhatItBorrowsIsKnownWhereAnUpdateWasUnderWay) {
  BalloonsNode node(kSection);
  const ContainerKey a = *node.Run("a", {.request = 2000, .type = "web"});
  node.FollowUse({{a, 2.0}}, seconds(0));
  ASSERT_EQ(node.SetOf(a).size(), 3);
  node.snapshot().At(a).may_be_elsewhere = true;
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
}

ConfigNode Yaml(std::string_view text) {
  return *ParseYaml(text, "a.yaml");
}

TEST(BalloonsNotesTest, WhatHasNoEffectIsNamedOnce) {
  EXPECT_THAT(BalloonsWithoutEffect(Yaml("balloonTypes: [{name: x}]")), IsEmpty());
  EXPECT_THAT(BalloonsWithoutEffect(Yaml("balloonTypes: [{name: x, minCPUs: 2, maxCPUs: 1}]")),
              IsEmpty());
  EXPECT_THAT(
      BalloonsWithoutEffect(
          Yaml("{agent: {nodeResourceTopology: true, podResourceAPI: false}, log: {}, "
               "showContainersInNrt: true, idleCPUClass: idle, turboDomain: system, "
               "balloonTypes: [{name: x, cpuClass: turbo, rdtClass: gold, preferCloseToDevices: "
               "[\"podresourceapi:example.com/nic\"]}]}")),
      ElementsAre(
          "policy.balloons: keys that are read without effect: agent.nodeResourceTopology, log, "
          "showContainersInNrt",
          "policy.balloons: devices that only the kubelet knows, which "
          "`agent.podResourceAPI: false` does not ask: podresourceapi:example.com/nic of "
          "type x"));
  std::string types;
  for (int i = 0; i < 40; ++i)
    types += fmt::format("{{name: x{}, preferCloseToDevices: [\"podresourceapi:a\"]}}, ", i);
  EXPECT_THAT(BalloonsWithoutEffect(Yaml(
                  fmt::format("{{agent: {{podResourceAPI: false}}, balloonTypes: [{}]}}", types))),
              ElementsAre(testing::EndsWith(" and 24 more")));
}

// Containers move between balloons of a type because of their use.

// Two balloons of four CPUs each.
constexpr std::string_view kFixed =
    "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 4, minBalloons: 2, maxBalloons: 2}]";

class BalloonsSharedMovesTest : public testing::Test {
 protected:
  ContainerKey Run(BalloonsNode& node, std::string_view name, int64_t request = 500) {
    const StatusOr<ContainerKey> key = node.Run(name, {.request = request, .type = "x"});
    EXPECT_TRUE(key.ok()) << key.status();
    return key.value_or(ContainerKey());
  }
  static StatusOr<Plan> Move(BalloonsNode& node, ContainerKey key, const std::string& pool) {
    const StatusOr<Plan> plan =
        node.policy().MoveShared(node.snapshot(), std::vector<policy::PoolMove>{{key, pool}});
    if (plan.ok()) node.snapshot().Apply(*plan);
    return plan;
  }
};

TEST_F(BalloonsSharedMovesTest, AMoveAndItsReturnGiveTheStateBefore) {
  BalloonsNode node(kFixed);
  const ContainerKey a = Run(node, "a");
  const ContainerKey b = Run(node, "b");
  const std::string from = node.PoolOf(a);
  const std::string cpus = node.CpusOf(a);
  const std::vector<std::string> targets = node.policy().TargetsOf(node.snapshot(), a);
  ASSERT_THAT(targets, SizeIs(1));
  ASSERT_TRUE(Move(node, a, targets[0]).ok());
  EXPECT_EQ(node.PoolOf(a), targets[0]);
  EXPECT_NE(node.CpusOf(a), cpus);
  EXPECT_THAT(node.PlacementOf(a).reason, HasSubstr("moved by what is used"));
  ASSERT_TRUE(Move(node, a, from).ok());
  EXPECT_EQ(node.PoolOf(a), from);
  EXPECT_EQ(node.CpusOf(a), cpus);
  EXPECT_NE(a, b);
}

TEST_F(BalloonsSharedMovesTest, CrowdedBalloonsGiveToThoseWithRoom) {
  BalloonsNode node(kFixed);
  policy::MeasuredUse use{.over = std::chrono::seconds(60)};
  std::vector<ContainerKey> keys;
  for (const char* const name : {"a", "b", "c", "d"})
    keys.push_back(Run(node, name));
  for (const ContainerKey key : keys) {
    const bool crowded = node.PoolOf(key) == node.PoolOf(keys[0]);
    use.containers[key] = {.cpus = crowded ? 2.0 : 0.1, .pressure = crowded ? 40 : 0};
  }
  const policy::UsePlan plan =
      policy::PlanByUse(node.policy(), node.snapshot(), use, policy::UseLimits(), {});
  EXPECT_GT(plan.lacking, 1);
  ASSERT_THAT(plan.moves, SizeIs(1));
  EXPECT_EQ(plan.moves[0].from, node.PoolOf(keys[0]));
  const StatusOr<Plan> moved = Move(node, plan.moves[0].key, plan.moves[0].to);
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_NEAR(policy::Lacking(policy::LoadsOf(node.policy(), node.snapshot(), use)),
              plan.lacking_after, 0.001);
  // A restart keeps it where it is.
  node.RestartPolicy();
  node.Reconcile();
  EXPECT_EQ(node.PoolOf(plan.moves[0].key), plan.moves[0].to);
}

TEST_F(BalloonsSharedMovesTest, GroupedContainersAndImpossibleMovesStay) {
  BalloonsNode node(
      "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 4, minBalloons: 2, maxBalloons: 2, "
      "preferPerNamespaceBalloon: true}]");
  const ContainerKey a = Run(node, "a");
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
  const std::string pool = node.PoolOf(a);
  for (const char* const to : {"x[0]", "x[1]", "x[7]"})
    EXPECT_EQ(Move(node, a, to).status().code(), StatusCode::kFailedPrecondition) << to;
  EXPECT_EQ(Move(node, ContainerKey{99}, "x[1]").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(node.PoolOf(a), pool);
}

TEST_F(BalloonsSharedMovesTest, ABalloonThatIsFullTakesNoneIn) {
  BalloonsNode node(kFixed);
  const ContainerKey a = Run(node, "a", 3000);
  Run(node, "b", 3500);
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
}

// The components are rounded up, so it has more CPUs than its limit.
TEST_F(BalloonsSharedMovesTest, ALimitCountsThoughTheBalloonIsLarger) {
  BalloonsNode node(
      "balloonTypes: [{name: part}, {name: x, maxCPUs: 1, minBalloons: 2, maxBalloons: 2, "
      "preferSpreadingPods: true, components: [{balloonType: part}, {balloonType: part}]}]");
  const ContainerKey a = Run(node, "a");
  Run(node, "b", 800);
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
}

// A balloon with sizeBy is as full as its limits make it.
TEST_F(BalloonsSharedMovesTest, WhatCountsForTheSizeCountsForTheRoom) {
  BalloonsNode node(
      "balloonTypes: [{name: x, minCPUs: 4, maxCPUs: 4, minBalloons: 2, maxBalloons: 2, sizeBy: "
      "limit}]");
  const ContainerKey a = *node.Run("a", {.request = 100, .type = "x", .limit = 3000});
  const ContainerKey b = *node.Run("b", {.request = 100, .type = "x", .limit = 3000});
  ASSERT_NE(node.PoolOf(a), node.PoolOf(b));
  EXPECT_THAT(node.policy().TargetsOf(node.snapshot(), a), IsEmpty());
}

}  // namespace
}  // namespace resmgr
