// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/stage_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
