// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/topology/machine_source.h"
#include "policies/null/null_policy.h"

namespace resmgr {
namespace {

using ::testing::HasSubstr;

StepEffect SomeEffect() {
  StepEffect effect = {{.cpus = "1-2",
                        .mems = "0",
                        .exclusive = "1-2",
                        .shares = 2048,
                        .quota = -1,
                        .pool = "exclusive",
                        .reason = "whole CPUs"}};
  effect.step = 3;
  effect.op = "create";
  effect.pod = "shop/web";
  effect.container = "main";
  effect.candidates = {"node 0: the best"};
  effect.changed = {{.pod = "shop/log",
                     .container = "log",
                     .old_cpus = "0-3",
                     .old_mems = "0-1",
                     .cpus = "0,3",
                     .mems = "0-1"}};
  return effect;
}

TEST(ReportTest, JsonHasItsKeysInOrder) {
  EXPECT_EQ(
      ToJson(SomeEffect()),
      R"({"step":3,"op":"create","pod":"shop/web","container":"main","cpus":"1-2",)"
      R"("mems":"0","exclusive":"1-2","shares":2048,"quota":-1,"pool":"exclusive","reason":"whole CPUs","error":"",)"
      R"("changed":[{"pod":"shop/log","container":"log","cpus":"0,3","mems":"0-1"}]})");
  EXPECT_EQ(ToJson({}),
            R"({"step":0,"op":"","pod":"","container":"","cpus":"","mems":"","exclusive":"",)"
            R"("shares":0,"quota":0,"pool":"","reason":"","error":"","changed":[]})");
}

TEST(ReportTest, TheTableShowsRefusalsAndMoves) {
  StepEffect refused;
  refused.step = 4;
  refused.op = "create";
  refused.pod = "shop/db";
  refused.container = "main";
  refused.error = "no room";
  EXPECT_EQ(ToTable({SomeEffect(), refused}),
            "STEP  OP      CONTAINER      CPUS  EXCLUSIVE  MEMS  SHARES  QUOTA  POOL\n"
            "3     create  shop/web/main  1-2   1-2        0     2048    -      exclusive\n"
            "              0-3 -> 0,3: shop/log/log\n"
            "4     create  shop/db/main   -     -          -     -       -      -\n"
            "              no room\n");
  EXPECT_THAT(ToTable({SomeEffect()}, true), HasSubstr("              whole CPUs\n"
                                                       "                node 0: the best\n"
                                                       "              0-3 -> 0,3: shop/log/log\n"));
}

TEST(ReportTest, TheTableTellsWhereAClaimIs) {
  StepEffect held = {{.cpus = "4-5",
                      .exclusive = "4-5",
                      .quota = -1,
                      .pool = "exclusive",
                      .reason = "cpu-numa-1: CPUs 4-5"}};
  held.step = 1;
  held.op = "prepare";
  held.pod = "shop/fast";
  EXPECT_EQ(ToTable({held}),
            "STEP  OP       CONTAINER  CPUS  EXCLUSIVE  MEMS  SHARES  QUOTA  POOL\n"
            "1     prepare  shop/fast  4-5   4-5        -     -       -      exclusive\n"
            "               cpu-numa-1: CPUs 4-5\n");
}

TEST(ReportTest, SameChangesShareALine) {
  StepEffect effect = SomeEffect();
  effect.changed.clear();
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    effect.changed.push_back({.pod = "n/p", .container = name, .old_cpus = "0-3", .cpus = "0-1"});
  }
  effect.changed.push_back({.pod = "n/p", .container = "f", .old_cpus = "0-3", .cpus = "2"});
  effect.changed.push_back({.pod = "n/p",
                            .container = "g",
                            .old_cpus = "4",
                            .old_mems = "0",
                            .cpus = "4",
                            .mems = "0-1"});
  const std::string table = ToTable({effect});
  EXPECT_THAT(table, HasSubstr(" 0-3 -> 0-1: n/p/a, n/p/b, n/p/c and 2 more\n"));
  EXPECT_THAT(table, HasSubstr(" 0-3 -> 2: n/p/f\n"));
  EXPECT_THAT(table, HasSubstr(" mems 0 -> 0-1: n/p/g\n"));
}

TEST(ReportTest, TheSummaryCounts) {
  const Machine machine = *LoadMachine("synthetic:numa:2 core:2 pu:2");
  const SimulatedNode node(machine, std::make_unique<NullPolicy>());
  StepEffect refused;
  refused.error = "no room";
  EXPECT_EQ(
      Summary({SomeEffect(), refused, SomeEffect()}, node),
      "placed         2 containers\n"
      "refused        1\n"
      "moved          0 with CPUs of their own, 1 on shared CPUs\n"
      "exclusive      0 CPUs (-)\n"
      "fragmentation  8 CPUs not exclusively assigned, 0 of them on cores that are partly taken\n"
      "               4 on node 0, 4 on node 1\n");
}

}  // namespace
}  // namespace resmgr
