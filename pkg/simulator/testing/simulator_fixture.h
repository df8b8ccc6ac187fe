// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/log/log.h"
#include "pkg/policy/registry.h"
#include "pkg/simulator/simulator.h"
#include "pkg/topology/machine_source.h"
#include "policies/null/null_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"

namespace resmgr::test {

// Two NUMA nodes of four CPUs, CPU 0 reserved.
class SimulatorFixture : public testing::Test {
 protected:
  explicit SimulatorFixture(const std::string& machine = "synthetic:numa:2 core:4 pu:1")
      : machine_(*LoadMachine(machine)) {
    ConfigureLogging({.level = LogLevel::kError});
  }

  // A configuration with the policy "greedy" is refused.
  void Start(const std::string& config_text) {
    Simulator::Options options{.machine = machine_, .make_policy = {}, .read_config = {}};
    options.make_policy = [this](const Config& config) -> StatusOr<std::unique_ptr<Policy>> {
      if (config.policy.active == "greedy") return InvalidArgument("it does not fit");
      return policies_.Create(
          config.policy.active,
          {.machine = machine_, .available = machine_.online(), .reserved = {0}});
    };
    options.read_config = [](const ConfigNode& node) { return ParseConfig(node, ConfigChecks()); };
    options.config = *ParseConfig(config_text, "c.yaml", ConfigChecks());
    auto simulator = Simulator::Create(std::move(options));
    ASSERT_TRUE(simulator.ok()) << Describe(simulator.status());
    simulator_ = *std::move(simulator);
  }

  // The effects as "OP [POD[/CONTAINER]] CPUS(EXCLUSIVE) [POD/CONTAINER=CPUS]...".
  std::vector<std::string> Run(const std::string& text) {
    if (simulator_ == nullptr) Start("policy.Active: static");
    const auto scenario = ReadScenario(text, "s.yaml");
    EXPECT_TRUE(scenario.ok()) << Describe(scenario.status());
    std::vector<std::string> lines;
    if (!scenario.ok()) return lines;
    for (const Step& step : *scenario) {
      for (StepEffect& effect : simulator_->Run(step)) {
        std::string line = effect.op;
        if (!effect.pod.empty()) line += " " + effect.pod;
        if (!effect.container.empty()) line += "/" + effect.container;
        line += fmt::format(" {}({})", effect.cpus, effect.exclusive);
        for (const auto& change : effect.changed)
          line += fmt::format(" {}/{}={}", change.pod, change.container, change.cpus);
        if (!effect.error.empty()) line += " error";
        lines.push_back(line);
        last_ = effect;
        effects_.push_back(std::move(effect));
      }
    }
    return lines;
  }

  static std::string SharedPod(std::string_view name) {
    return fmt::format(
        "---\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: main}}]}}\n", name);
  }

  const Machine machine_;
  const PolicyRegistry policies_ = PolicyRegistry(
      std::array{NullPolicyFactory(), StaticPolicyFactory(), TopologyAwarePolicyFactory()});
  std::unique_ptr<Simulator> simulator_;
  StepEffect last_;
  std::vector<StepEffect> effects_;
};

}  // namespace resmgr::test
