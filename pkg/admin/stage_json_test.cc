// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/stage_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::HasSubstr;

TEST(StageJsonTest, PluginsHaveTheirFixedForm) {
  const PluginView plugin{.kind = "nri",
                          .name = "logger",
                          .index = "10",
                          .state = PluginView::State::kReady,
                          .events = {"CreateContainer"},
                          .calls = 3,
                          .failures = 1,
                          .last_error = "no answer",
                          .p50_micros = 90};
  EXPECT_EQ(PluginsJson({plugin, {.kind = "hook", .state = PluginView::State::kFailed}}).dump(),
            R"([{"kind":"nri","name":"logger","index":"10","state":"ready",)"
            R"("events":["CreateContainer"],"calls":3,"failures":1,"lastError":"no answer",)"
            R"("p50Micros":90},{"kind":"hook","name":"","index":"","state":"failed",)"
            R"("events":[],"calls":0,"failures":0,"lastError":"","p50Micros":0}])");
  EXPECT_EQ(PluginsJson({}).dump(), "[]");
}

TEST(StageJsonTest, WhatAStageChangesAgainIsItsOwn) {
  FieldOwners owners;
  owners.Add(
      "c1",
      {{.change = {.field = Field::kEnvironment, .key = "A"}, .stage = "nri", .plugin = "10-env"},
       {.change = {.field = Field::kCpuShares}, .stage = "hook"}});
  OrderedJson containers = OrderedJson::parse(
      R"([{"id":"c1","owners":[{"field":"cpuset_cpus","key":"","stage":"policy","plugin":""},
                               {"field":"cpu_shares","key":"","stage":"policy","plugin":""}]},
          {"id":"c2","owners":[]}])");
  AddOwners(owners, containers);
  EXPECT_EQ(containers.at(0)["owners"].dump(),
            R"([{"field":"cpuset_cpus","key":"","stage":"policy","plugin":""},)"
            R"({"field":"cpu_shares","key":"","stage":"hook","plugin":""},)"
            R"({"field":"environment","key":"A","stage":"nri","plugin":"10-env"}])");
  EXPECT_EQ(containers.at(1)["owners"], OrderedJson::array());
}

SeenContainer Seen(const std::string& pod, const std::string& id) {
  SeenContainer seen;
  seen.pod.name = pod;
  seen.pod.namespace_name = "shop";
  seen.pod.labels = {{"app", pod}};
  seen.container.id = ContainerId(id);
  seen.container.name = "main";
  seen.container.requested.cpuset_cpus = "0-1";
  seen.container.requested.cpu_shares = 512;
  return seen;
}

FieldOwners OwnersOf(const std::string& id) {
  FieldOwners owners;
  owners.Add(
      id, {{.change = {.field = Field::kCpuShares}, .stage = "hooks", .plugin = "koordlet.json"}});
  return owners;
}

TEST(SeenJsonTest, TellsWhichServerChangedWhat) {
  const auto list =
      ExplainSeenJson({Seen("web", "c1"), Seen("db", "c2")}, OwnersOf("c1"), "web", {});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(
      list->dump(),
      R"([{"id":"c1","pod":"web","namespace":"shop","name":"main","cpus":"0-1","mems":"",)"
      R"("shares":512,"quota":-1,"period":0,"memoryLimit":0,"policy":"null",)"
      R"("owners":[{"field":"cpu_shares","key":"","stage":"hooks","plugin":"koordlet.json"}],)"
      R"("hints":[],"candidates":[]}])");
}

TEST(SeenJsonTest, ChoosesByNameIdAndLabel) {
  const std::vector<SeenContainer> seen = {Seen("web", "0123456789"), Seen("db", "abcdef0123")};
  const FieldOwners owners;
  EXPECT_EQ(ExplainSeenJson(seen, owners, "shop/db/main", {})->size(), 1u);
  EXPECT_EQ(ExplainSeenJson(seen, owners, "abcdef", {})->front()["pod"], "db");
  EXPECT_EQ(ExplainSeenJson(seen, owners, "shop/d", {}, NameMatch::kBeginning)->size(), 1u);
  EXPECT_EQ(ExplainSeenJson(seen, owners, "", {})->size(), 2u);
  ContainerChoice choice;
  choice.labels = *LabelSelector::Parse("app=web");
  EXPECT_EQ(ExplainSeenJson(seen, owners, "", choice)->front()["id"], "0123456789");
  choice.namespace_name = "other";
  EXPECT_EQ(ExplainSeenJson(seen, owners, "", choice).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(ExplainSeenJson(seen, owners, "cache", {}).status())),
              HasSubstr("no container is called cache"));
}

}  // namespace
}  // namespace resmgr
