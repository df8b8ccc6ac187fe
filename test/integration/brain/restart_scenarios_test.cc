// SPDX-License-Identifier: Apache-2.0
// Random scenarios of the simulator: a restart changes nothing about any container.
// RESMGR_SCENARIOS: how many in all, kUsual unless given. RESMGR_SEED: the first seed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/config/config.h"
#include "pkg/log/log.h"
#include "pkg/node/policy_setup.h"
#include "pkg/simulator/simulator.h"
#include "pkg/topology/machine_source.h"
#include "policies/builtin_policies.h"
#include "test/integration/brain/random_scenario.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr uint64_t kUsual = kSanitized ? 90 : 1200;

constexpr std::array<std::string_view, 21> kMachines = {
    "synthetic:package:1 core:4 pu:1",
    "synthetic:package:1 numa:1 l3:1 core:8 pu:2",
    "synthetic:package:1 l3:2 core:4 pu:2",
    "synthetic:package:2 numa:1(memory=8GB) core:4 pu:2",
    "synthetic:package:2 numa:4 l3:2 core:2 pu:2",
    "synthetic:package:2 numa:2(memory=4GB) core:8 pu:1",
    "synthetic:package:2 die:2 numa:1 l3:2 core:2 pu:2",
    "synthetic:numa:2 package:2 core:3 pu:2",
    "synthetic:package:4 numa:2(memory=2GB) l3:1 core:4 pu:4",
    "alderlake-2p4e.xml",
    "arm-dynamiq-4-3-1.xml",
    "cascadelake-2s-dies.xml",
    "epyc-2s-ccx.xml",
    "laptop-4c8t.xml",
    "odd-memory.xml",
    "power-smt4-uneven.xml",
    "restricted-2s.xml",
    "xeon-2s-hbm-flat.xml",
    "xeon-2s-pmem.xml",
    "xeon-2s-snc2.xml",
    "xeon-favoured-cores.xml",
};

std::string SpecOf(std::string_view name) {
  if (name.starts_with("synthetic:")) return std::string(name);
  return fmt::format(RESMGR_SOURCE_DIR "/test/data/topology/{}", name);
}

// Describes a container's decided values.
std::string Describe(const RunningContainer& container) {
  return fmt::format("{}/{} on '{}', alone on '{}', memory '{}', shares {}, quota {}, pool {}",
                     container.pod, container.name, container.cpus, container.exclusive,
                     container.mems, container.shares, container.quota, container.pool);
}

class ScenarioNode {
 public:
  explicit ScenarioNode(std::string_view machine)
      : machine_(*LoadMachine(SpecOf(machine))), policies_(BuiltinPolicies()) {}

  const Machine& machine() const { return machine_; }

  // Describes the changes by restarts; empty if there are none.
  std::string ChangesByRestarts(const std::string& config,
                                const std::vector<std::string>& documents) {
    const ConfigChecks checks = ChecksWith(policies_);
    StatusOr<Config> read = ParseConfig(config, "config", checks);
    EXPECT_TRUE(read.ok()) << resmgr::Describe(read.status());
    auto simulator = Simulator::Create(
        {.machine = machine_,
         .make_policy =
             [&](const Config& wanted) {
               return MakePolicy(wanted.policy, wanted.runtimes, machine_, policies_);
             },
         .config = *std::move(read),
         .read_config = [&checks](const ConfigNode& node) { return ParseConfig(node, checks); }});
    // Not every configuration is for every machine.
    if (!simulator.ok()) {
      EXPECT_EQ(simulator.status().code(), StatusCode::kInvalidArgument);
      return "";
    }
    for (const std::string& document : documents) {
      const StatusOr<Scenario> scenario = ReadScenario(document, "scenario");
      EXPECT_TRUE(scenario.ok()) << resmgr::Describe(scenario.status()) << document;
      for (const Step& step : *scenario) {
        const std::vector<RunningContainer> before = (*simulator)->node().Running();
        (*simulator)->Run(step);
        if (!std::holds_alternative<RestartStep>(step.action)) continue;
        compared_ += before.size();
        std::string changes = Changes(before, (*simulator)->node().Running());
        if (!changes.empty()) return changes;
      }
    }
    return "";
  }

  // Containers that ran at a restart, over all of them.
  size_t compared() const { return compared_; }

  // The smallest set of documents that shows the change.
  std::vector<std::string> Smallest(const std::string& config, std::vector<std::string> documents) {
    for (bool shorter = true; shorter;) {
      shorter = false;
      for (size_t i = 0; i < documents.size(); ++i) {
        std::vector<std::string> fewer = documents;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (ChangesByRestarts(config, fewer).empty()) continue;
        documents = std::move(fewer);
        shorter = true;
        break;
      }
    }
    return documents;
  }

 private:
  static std::string Changes(const std::vector<RunningContainer>& before,
                             const std::vector<RunningContainer>& now) {
    std::string changes;
    if (before.size() != now.size()) return "other containers run\n";
    for (size_t i = 0; i < now.size(); ++i) {
      const std::string was = Describe(before[i]);
      const std::string is = Describe(now[i]);
      if (was != is) changes += fmt::format("{}\n  became {}\n", was, is);
    }
    return changes;
  }

  const Machine machine_;
  const PolicyRegistry policies_;
  size_t compared_ = 0;
};

uint64_t Scenarios() {
  const char* const given = std::getenv("RESMGR_SCENARIOS");
  if (given == nullptr) return kUsual;
  const std::optional<uint64_t> count = ParseUint(given);
  EXPECT_TRUE(count.has_value()) << "RESMGR_SCENARIOS=" << given << " is no number";
  return count.value_or(kUsual);
}

// A scenario in which a restart once changed something.
struct KnownScenario {
  std::string_view machine;
  std::string_view config;
  std::vector<std::string> documents;
};

// The place of unbound memory is unknown: it was counted where another container's memory is.
KnownScenario MemoryThatIsNotBound() {
  return {
      "synthetic:package:2 numa:4 l3:2 core:2 pu:2",
      "{policy: {Active: topology-aware, ReservedResources: {CPU: 1}}}",
      {"{kind: Pod, metadata: {name: free, annotations: {memory.preserve.resource-policy.nri.io/"
       "pod: 'true'}}, spec: {containers: [{name: c, resources: {limits: {cpu: 2, memory: "
       "2576980377}}}]}}",
       "resize: {pod: default/free, container: c, resources: {requests: {cpu: 500m}, limits: "
       "{cpu: 500m}}}",
       "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c1, resources: {limits: "
       "{cpu: 32, memory: 64Mi}}}, {name: c2, resources: {limits: {cpu: 1, memory: 64Mi}}}]}}",
       "restart: relay"}};
}

// Its exclusive CPUs were not whole cores, but were taken for these after the restart.
KnownScenario HiddenThreadsOfUnevenCores() {
  return {"power-smt4-uneven.xml",
          "{policy: {Active: topology-aware, ReservedResources: {CPU: 750m}}}",
          {"{kind: Pod, metadata: {name: s, namespace: kube-system}, spec: {containers: [{name: c, "
           "resources: {limits: {cpu: 8, memory: 16Mi}}}]}}",
           "{kind: Pod, metadata: {name: p, annotations: {hide-hyperthreads.resource-policy.nri.io/"
           "pod: 'true'}}, spec: {containers: [{name: c1, resources: {limits: {cpu: 4, memory: "
           "64Mi}}}, {name: c2, resources: {limits: {cpu: 1, memory: 16Mi}}}]}}",
           "{kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, resources: {requests: "
           "{cpu: 3}, limits: {cpu: 12}}}]}}",
           "restart: relay"}};
}

// It is alone on as many CPUs as it requests, by chance, and shares them by its pool.
KnownScenario AloneByChance() {
  return {"odd-memory.xml",
          "{policy: {Active: topology-aware, ReservedResources: {CPU: 2}}}",
          {"{kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, resources: {requests: "
           "{cpu: 1, memory: 64Mi}, limits: {cpu: 12}}}]}}",
           "{kind: Pod, metadata: {name: g}, spec: {containers: [{name: c, resources: {limits: "
           "{cpu: 3, memory: 256Mi}}}]}}",
           "restart: relay"}};
}

TEST(RestartTest, ChangesNothingWhereItOnceDid) {
  SetLogLevel(LogLevel::kError);
  for (const KnownScenario& known :
       {MemoryThatIsNotBound(), HiddenThreadsOfUnevenCores(), AloneByChance()}) {
    ScenarioNode node(known.machine);
    EXPECT_EQ(node.ChangesByRestarts(std::string(known.config), known.documents), "");
    EXPECT_GT(node.compared(), 0U);
  }
}

class RestartScenariosTest : public testing::TestWithParam<std::string_view> {};

TEST_P(RestartScenariosTest, ARestartChangesNothing) {
  SetLogLevel(LogLevel::kError);
  const uint64_t first = SeedOr(1);
  const uint64_t count = std::max<uint64_t>(Scenarios() / 4 / kMachines.size(), 1);
  int failures = 0;
  uint64_t compared = 0;
  for (const std::string_view name : kMachines) {
    ScenarioNode node(name);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      const RandomScenario scenario = SomeScenario(node.machine(), GetParam(), seed);
      if (node.ChangesByRestarts(scenario.config, scenario.documents).empty()) continue;
      const std::vector<std::string> documents = node.Smallest(scenario.config, scenario.documents);
      std::string text;
      for (const std::string& document : documents)
        text += "---\n" + document;
      ADD_FAILURE() << Repeat(seed) << " on " << name << ": a restart changed\n"
                    << node.ChangesByRestarts(scenario.config, documents)
                    << "configuration: " << scenario.config << text;
      if (++failures == 3) return;
    }
    EXPECT_GT(node.compared(), 0U) << name;
    compared += node.compared();
  }
  // With sanitizers there is one scenario for each machine, and some are quiet.
  EXPECT_GT(compared, 2 * count * kMachines.size()) << "too quiet to prove anything";
}

INSTANTIATE_TEST_SUITE_P(Policies, RestartScenariosTest,
                         testing::Values("static", "static-plus", "topology-aware", "balloons"),
                         [](const auto& one) {
                           std::string name(one.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr::test
