// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

std::string ScenarioError(const std::string& text) {
  const auto scenario = ReadScenario(text, "s.yaml");
  EXPECT_EQ(scenario.status().code(), StatusCode::kInvalidArgument) << text;
  return std::string(Message(scenario.status()));
}

TEST(ScenarioTest, ReadsPodsAndControlDocuments) {
  const auto scenario = ReadScenario(R"(# a comment
---
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c}]}
---
delete: shop/server
---
delete: shop/server/main
---
resize: {pod: default/p, container: c, resources: {limits: {cpu: 3}}}
---
restart: relay
---
config: {policy: {Active: static}}
---
)",
                                     "s.yaml");
  ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
  ASSERT_EQ(scenario->size(), 6u);
  EXPECT_EQ(std::get<Manifest>((*scenario)[0].action).name, "p");
  EXPECT_EQ((*scenario)[0].where, "s.yaml:3");
  EXPECT_EQ(std::get<DeleteStep>((*scenario)[1].action).target.container, "");
  const Target target = std::get<DeleteStep>((*scenario)[2].action).target;
  EXPECT_EQ(target.PodName(), "shop/server");
  EXPECT_EQ(target.container, "main");
  const auto& resize = std::get<ResizeStep>((*scenario)[3].action);
  EXPECT_EQ(resize.target.PodName(), "default/p");
  EXPECT_EQ(resize.target.container, "c");
  EXPECT_EQ(resize.change.cpu_limit, MilliCpu{3000});
  EXPECT_TRUE(std::holds_alternative<RestartStep>((*scenario)[4].action));
  EXPECT_EQ(std::get<ConfigStep>((*scenario)[5].action).config.entries.size(), 1u);
}

TEST(ScenarioTest, ReadsWhatContainersUse) {
  const auto scenario = ReadScenario(
      "use: {shop/web: 1500m, shop/db/main: {cpus: 0.5, pressure: 50}}\n---\n"
      "rebalance: {by: use, apply: true, moves: 3}\n---\nrebalance: {by: use}\n",
      "s.yaml");
  ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
  const auto& use = std::get<UseStep>((*scenario)[0].action);
  ASSERT_EQ(use.entries.size(), 2u);
  EXPECT_EQ(use.entries[0].target.PodName(), "shop/web");
  EXPECT_DOUBLE_EQ(use.entries[0].wanted, 1.5);
  EXPECT_EQ(use.entries[1].target.container, "main");
  EXPECT_DOUBLE_EQ(use.entries[1].wanted, 1) << "it waited for as much";
  const auto& apply = std::get<RebalanceStep>((*scenario)[1].action);
  EXPECT_TRUE(apply.apply && apply.by_use);
  EXPECT_EQ(apply.moves, 3);
  const auto& preview = std::get<RebalanceStep>((*scenario)[2].action);
  EXPECT_TRUE(preview.by_use && !preview.apply && !preview.moves);
}

TEST(ScenarioTest, WrongUseHasItsPlace) {
  EXPECT_THAT(ScenarioError("use: 1"), HasSubstr("s.yaml:1: use: must be a map of containers"));
  EXPECT_THAT(ScenarioError("use: {web: 1}"), HasSubstr("must be NAMESPACE/POD[/CONTAINER]"));
  for (const std::string wrong :
       {"-1", "x", "[1]", "{cpus: -1}", "{pressure: 101}", "{pressure: -1}", "{memory: 1}"})
    EXPECT_THAT(ScenarioError("use: {shop/web: " + wrong + "}"), HasSubstr("use.shop/web"));
  for (const std::string wrong : {"{by: chance}", "{moves: 101}", "{when: now}", "[]"})
    EXPECT_THAT(ScenarioError("rebalance: " + wrong), HasSubstr("s.yaml:1: rebalance"));
}

TEST(ScenarioTest, AnEmptyTextHasNoSteps) {
  EXPECT_EQ(ReadScenario("", "s.yaml")->size(), 0u);
}

TEST(ScenarioTest, ErrorsHaveTheirPlace) {
  const std::string pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n---\n";
  EXPECT_THAT(ScenarioError(pod + "a: [\n"), HasSubstr("s.yaml:"));
  EXPECT_THAT(ScenarioError(pod + "kind: Deployment\n"),
              HasSubstr("s.yaml:5: metadata.name: a Deployment needs a name"));
  EXPECT_THAT(ScenarioError(pod + "metadata: {name: p}\nspec: {}\n"),
              HasSubstr("s.yaml:5: kind: is missing; a Pod has \"kind: Pod\""));
  EXPECT_THAT(ScenarioError(pod + "remove: a/b\n"),
              HasSubstr("s.yaml:5: remove: a document is a Pod"));
  EXPECT_THAT(ScenarioError(pod + "3\n"), HasSubstr("s.yaml:5: a document is a Pod"));
  EXPECT_THAT(ScenarioError("delete: a/b\nrestart: relay\n"),
              HasSubstr("s.yaml:1: a document is a Pod"));
  for (const char* target : {"p", "a/b/c/d", "/p", "a/", "a//c", "[a/b]", ""}) {
    EXPECT_THAT(ScenarioError(std::string("delete: ") + target),
                HasSubstr("NAMESPACE/POD[/CONTAINER]"))
        << target;
  }
  EXPECT_THAT(ScenarioError("restart: kubelet"), HasSubstr("only \"relay\" can be restarted"));
  EXPECT_THAT(ScenarioError("config: 3"), HasSubstr("config: must be a map"));
  EXPECT_THAT(ScenarioError("resize: 3"), HasSubstr("resize: must be a map"));
  EXPECT_THAT(ScenarioError("resize: {container: c, resources: {}}"),
              HasSubstr("resize.pod: is missing"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b, resources: {}}"),
              HasSubstr("resize.container: is missing"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b/c, container: c, resources: {}}"),
              HasSubstr("must be NAMESPACE/POD"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b, container: c}"), HasSubstr("resize.resources"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b, container: c, resources: {}, more: 1}"),
              HasSubstr("resize.more"));
}

TEST(ScenarioTest, IsBounded) {
  EXPECT_THAT(ScenarioError(std::string(kMaxYamlDocumentsSize + 1, ' ')),
              HasSubstr("more than 33554432"));
  std::string many;
  for (size_t i = 0; i < kMaxYamlDocuments; ++i)
    many += "---\nwait: 1s\n";
  EXPECT_THAT(ReadScenario(many, "s.yaml")->size(), kMaxYamlDocuments) << "all pods, and more";
  EXPECT_THAT(ScenarioError(many + "---\nwait: 1s\n"),
              HasSubstr("more than 30000 documents are not allowed"));
}

}  // namespace
}  // namespace resmgr
