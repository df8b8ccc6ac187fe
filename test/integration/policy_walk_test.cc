// SPDX-License-Identifier: Apache-2.0
// Policies that take one after the other over, live, under containers that run.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "test/integration/control_fixture.h"
#include "test/support/placement_trail/placement_trail.h"

namespace resmgr::test {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class PolicyWalkTest : public ControlTest {
 protected:
  static constexpr int kManyCpus = 32;
  static constexpr const char* kMachine = "synthetic:package:2 numa:2 l3:1 core:4 pu:2";

  PolicyWalkTest() {
    FakeRuntime::Options options;
    options.store.cpus = kManyCpus;
    big_runtime_ = std::make_unique<FakeRuntime>(options);
  }
  ~PolicyWalkTest() override { big_runtime_->Stop(); }

  void Start() {
    ASSERT_THAT(big_runtime_->Start(RuntimeSocket()), IsOk());
    // Long enough that the trail sees the state between two updates.
    big_runtime_->Script("UpdateContainerResources", {.delay = milliseconds(2)});
    std::vector<std::string> flags = Flags({});
    flags.back() = kMachine;
    StartDaemon(flags);
  }

  // 20 containers: 8 that get CPUs for themselves under every policy but null, 12 that share.
  void RunTwenty() {
    CriClient client = Relayed();
    for (const int cpus : {1, 2, 1, 3, 2, 1, 4, 1}) {
      const std::string name = fmt::format("g{}", names_.size());
      names_[Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", cpus))
                 .container] = name;
    }
    for (const int request : {100, 250, 500, 1000, 1500, 200, 300}) {
      const std::string name = fmt::format("u{}", names_.size());
      names_[Run(client, MakeBurstablePod(name), MakeBurstableContainer("main", {request}))
                 .container] = name;
    }
    for (int i = 0; i < 5; ++i) {
      const std::string name = fmt::format("e{}", names_.size());
      names_[Run(client, MakeBestEffortPod(name), MakeBestEffortContainer("main")).container] =
          name;
    }
    ASSERT_THAT(names_, SizeIs(20));
  }

  std::string SetPolicy(const std::string& policy) const {
    return SetConfig(
        {{"policy",
          fmt::format("{{Active: \"{}\", ReservedResources: {{CPU: \"cpuset:0\"}}}}", policy)}});
  }

  Placements AtRuntime() {
    return big_runtime_->WithStore([this](const CriStore& store) {
      Placements placements;
      for (const auto& [id, container] : store.containers()) {
        const std::string& cpus = container.resources.cpuset_cpus();
        placements[names_.at(id)] =
            cpus.empty() ? CpuSet::Range(0, kManyCpus - 1) : CpuSet::Parse(cpus).value_or(CpuSet());
      }
      return placements;
    });
  }

  // The daemon's grant of each container; nothing under the null policy.
  Grants Granted() const {
    Grants grants;
    const Shown shown = Ctl({"containers", "-o", "json"});
    if (shown.exit_code != 0) return grants;
    for (const Json& container : shown.json()) {
      const auto set = [&](const char* key) {
        return CpuSet::Parse(container.at(key).get<std::string>()).value_or(CpuSet());
      };
      grants[container.at("pod").get<std::string>()] = {set("cpus"), set("exclusive")};
    }
    return grants;
  }
  // The placements of Guaranteed pods, whose CPUs are theirs alone.
  static Placements Alone(const Grants& grants) {
    Placements alone;
    for (const auto& [name, grant] : grants) {
      if (name.starts_with('g') && grant.own == grant.cpus) alone[name] = grant.own;
    }
    return alone;
  }

  void ExpectAllRunUntouched() {
    big_runtime_->WithStore([this](const CriStore& store) {
      EXPECT_THAT(store.containers(), SizeIs(names_.size()));
      for (const auto& [id, container] : store.containers())
        EXPECT_EQ(container.state, cri::CONTAINER_RUNNING) << names_.at(id);
    });
    EXPECT_THAT(big_runtime_->Calls("StartContainer"), SizeIs(names_.size()));
    for (const char* method : {"StopContainer", "RemoveContainer", "StopPodSandbox"})
      EXPECT_THAT(big_runtime_->Calls(method), IsEmpty());
  }

  std::unique_ptr<FakeRuntime> big_runtime_;
  std::map<std::string, std::string> names_;  // by id
};

TEST_F(PolicyWalkTest, TwentyContainersRunOnThroughAllPolicies) {
  Start();
  if (HasFatalFailure()) return;
  RunTwenty();
  PlacementTrail trail([this] { return AtRuntime(); });
  Grants grants;
  for (const std::string policy : {"static", "static-plus", "topology-aware", "static", "null",
                                   "topology-aware", "static-plus", "static"}) {
    SCOPED_TRACE(policy);
    ASSERT_EQ(SetPolicy(policy), "");
    const std::vector<Placements> seen = trail.Take();
    const Grants now = Granted();
    EXPECT_THAT(Violations(seen, grants, now), IsEmpty());
    // In force when the answer comes.
    EXPECT_THAT(Differences(seen.back(), now), IsEmpty());
    EXPECT_THAT(Alone(now), SizeIs(policy == "null" ? 0 : 8));
    for (const auto& [name, grant] : now)
      EXPECT_FALSE(grant.own.Contains(0)) << name << " has the reserved CPU";
    if (policy == "null") {
      for (const auto& [name, cpus] : seen.back())
        EXPECT_EQ(cpus.size(), kManyCpus) << name << " is not let go";
    }
    ExpectAllRunUntouched();
    grants = now;
  }
}

// A change to a policy whose rules are already fulfilled moves no container with exclusive CPUs.
TEST_F(PolicyWalkTest, PlacementsThatFulfilTheNewRulesStay) {
  Start();
  if (HasFatalFailure()) return;
  RunTwenty();
  ASSERT_EQ(SetPolicy("static"), "");
  const Placements before = Alone(Granted());
  for (const std::string policy : {"static-plus", "topology-aware", "static"}) {
    ASSERT_EQ(SetPolicy(policy), "") << policy;
    EXPECT_EQ(Alone(Granted()), before) << policy;
  }
}

}  // namespace
}  // namespace resmgr::test
