// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/scheduling_config.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using Policy = SchedulerSettings::Policy;

class SchedulingConfigTest : public testing::Test {
 protected:
  static StatusOr<SchedulingConfig> Read(std::string_view text) {
    RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(text, "f"));
    ConfigSection section(node, "classes");
    SchedulingConfig config;
    DescribeScheduling(section, config);
    RESMGR_RETURN_IF_ERROR(section.Finish());
    return config;
  }
  static StatusOr<SchedulingClassConfig> One(std::string_view keys) {
    RESMGR_ASSIGN_OR_RETURN(const SchedulingConfig config,
                            Read(fmt::format("scheduling: [{{name: a, {}}}]", keys)));
    return config.classes.at(0);
  }
  static std::string ErrorOf(std::string_view keys) {
    return std::string(Message(One(keys).status()));
  }
};

TEST_F(SchedulingConfigTest, ReadsTheKeysOfNriPlugins) {
  const SchedulingClassConfig expected{
      .name = "a",
      .scheduler = {.policy = Policy::kFifo,
                    .priority = 42,
                    .flags = {SchedulerSettings::Flag::kResetOnFork}},
      .io_priority = {.io_class = IoPriority::Class::kRealTime, .priority = 0}};
  EXPECT_EQ(
      One("policy: fifo, priority: 42, flags: [reset-on-fork], ioClass: rt, ioPriority: 0").value(),
      expected);
  const SchedulingClassConfig batch =
      One("policy: idle, nice: 17, ioClass: be, ioPriority: 6").value();
  EXPECT_EQ(batch.scheduler, (SchedulerSettings{.policy = Policy::kIdle, .nice = 17}));
  EXPECT_EQ(batch.io_priority, (IoPriority{IoPriority::Class::kBestEffort, 6}));
  EXPECT_EQ(One("nice: -5")->scheduler.policy, Policy::kOther);
  EXPECT_EQ(One("burst: 50%")->burst_percent, 50);
  EXPECT_EQ(One("ioClass: be")->io_priority.priority, 4);
}

TEST_F(SchedulingConfigTest, TimesHaveUnitsAndAreNanoseconds) {
  EXPECT_EQ(ParseNanoseconds("10ms").value(), 10'000'000U);
  EXPECT_EQ(ParseNanoseconds("500us").value(), 500'000U);
  EXPECT_EQ(ParseNanoseconds("1s").value(), 1'000'000'000U);
  EXPECT_EQ(ParseNanoseconds("1024ns").value(), 1024U);
  EXPECT_EQ(ParseNanoseconds("1024").value(), 1024U) << "a number alone";
  for (const char* const wrong : {"", "ms", "-1ms", "1.5ms", "1m", "9223372036854775807s"})
    EXPECT_FALSE(ParseNanoseconds(wrong).ok()) << wrong;
  const SchedulerSettings settings =
      One("policy: deadline, runtime: 10ms, period: 30ms")->scheduler;
  EXPECT_EQ(settings.runtime_ns, 10'000'000U);
  EXPECT_EQ(settings.deadline_ns, 30'000'000U) << "by default the period";
  EXPECT_EQ(settings.period_ns, 30'000'000U);
}

TEST_F(SchedulingConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("policy: fifo"),
            "f:1: classes.scheduling[0].priority: fifo and rr need a priority from 1 to 99");
  EXPECT_THAT(ErrorOf("policy: other, priority: 1"), HasSubstr("fifo and rr alone"));
  EXPECT_THAT(ErrorOf("policy: rr, priority: 1, nice: 1"), HasSubstr("nice: is for other"));
  EXPECT_THAT(ErrorOf("nice: 20"), HasSubstr("from -20 to 19"));
  EXPECT_THAT(ErrorOf("flags: [fast], policy: other"),
              HasSubstr("\"fast\" is not one of reset-on-fork, reclaim, "));
  EXPECT_THAT(ErrorOf("policy: deadline, runtime: 1000ns, period: 1s"), HasSubstr("1024ns"));
  EXPECT_THAT(ErrorOf("policy: deadline, runtime: 2ms, deadline: 1ms, period: 3ms"),
              HasSubstr("do not ascend"));
  EXPECT_THAT(ErrorOf("policy: deadline, runtime: 98ms, period: 100ms"), HasSubstr("95 %"));
  EXPECT_THAT(ErrorOf("policy: other, runtime: 1ms"), HasSubstr("for deadline alone"));
  EXPECT_THAT(ErrorOf("ioClass: rt"), HasSubstr("rt needs a priority from 0 to 7"));
  EXPECT_THAT(ErrorOf("ioClass: rt, ioPriority: 8"), HasSubstr("from 0 to 7"));
  EXPECT_THAT(ErrorOf("ioClass: idle, ioPriority: 1"), HasSubstr("rt and be alone"));
  EXPECT_THAT(ErrorOf("burst: 50"), HasSubstr("not a part from 0% to 1000%"));
  EXPECT_THAT(std::string(Message(Read("scheduling: [{nice: 1}]").status())),
              HasSubstr("a class has no name"));
  EXPECT_THAT(std::string(Message(Read("scheduling: [{name: a}, {name: a}]").status())),
              HasSubstr("\"a\" is there twice"));
}

TEST_F(SchedulingConfigTest, WhatIsShownIsReadAgain) {
  SchedulingConfig config =
      Read(
          "scheduling: [{name: a, policy: deadline, runtime: 1ms, deadline: 2ms, period: 3ms,"
          " flags: [reclaim]}, {name: b, nice: 3, ioClass: be, ioPriority: 0, burst: 100%}]")
          .value();
  std::vector<ConfigKey> keys;
  ConfigSection writer(keys);
  DescribeScheduling(writer, config);
  const ConfigNode shown = ValuesOf(keys);
  ConfigSection reader(shown, "classes");
  SchedulingConfig again;
  DescribeScheduling(reader, again);
  ASSERT_TRUE(reader.Finish().ok());
  EXPECT_EQ(again, config);
}

}  // namespace
}  // namespace resmgr
