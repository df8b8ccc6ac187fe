// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/blockio_config.h"
#include "pkg/config/config.h"
#include "pkg/config/cpu_classes_config.h"
#include "pkg/config/scheduling_config.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using testing::HasSubstr;

template <typename Classes>
StatusOr<Classes> ReadClasses(std::string_view text, void (*describe)(ConfigSection&, Classes&)) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ParseYaml(text, "f"));
  return ReadSection<Classes>(&node, "classes", describe, nullptr);
}

// The configuration that is read from what is shown of this one.
template <typename Classes>
Classes ShownAndRead(Classes config, void (*describe)(ConfigSection&, Classes&)) {
  std::vector<ConfigKey> keys;
  ConfigSection writer(keys);
  describe(writer, config);
  const ConfigNode shown = ValuesOf(keys);
  ConfigSection reader(shown, "classes");
  Classes again;
  describe(reader, again);
  EXPECT_EQ(reader.Finish(), OkStatus());
  return again;
}

class BlockioConfigTest : public testing::Test {
 protected:
  static StatusOr<BlockioConfig> Read(std::string_view text) {
    return ReadClasses(text, DescribeBlockio);
  }
  // The error of a class with this item.
  static std::string ErrorOf(std::string_view item) {
    return std::string(
        Message(Read(fmt::format("blockio: {{Classes: {{slow: [{{{}}}]}}}}", item)).status()));
  }
};

TEST_F(BlockioConfigTest, ReadsTheSchemaOfGoresctrl) {
  const BlockioConfig config = Read(
                                   "blockio:\n"
                                   "  Classes:\n"
                                   "    slow:\n"
                                   "      - Weight: 80\n"
                                   "      - Devices: [/dev/loop7, '/dev/disk/by-id/*SSD*']\n"
                                   "        ThrottleReadBps: 50M\n"
                                   "        ThrottleWriteBps: 1Gi\n"
                                   "        ThrottleReadIOPS: 10k\n"
                                   "        ThrottleWriteIOPS: 0\n"
                                   "        Weight: 10\n"
                                   "    none:\n")
                                   .value();
  const BlockioConfig::Classes expected = {{"none", {}},
                                           {"slow",
                                            {{.weight = 80},
                                             {.devices = {"/dev/loop7", "/dev/disk/by-id/*SSD*"},
                                              .read_bps = 50'000'000,
                                              .write_bps = uint64_t{1} << 30,
                                              .read_iops = 10'000,
                                              .write_iops = 0,
                                              .weight = 10}}}};
  EXPECT_EQ(config.classes, expected);
  EXPECT_EQ(config.assign, BlockioConfig::Assign::kAuto);
  EXPECT_EQ(Read("blockio: {Assign: runtime}")->assign, BlockioConfig::Assign::kRuntime);
  EXPECT_FALSE(Read("")->any());
}

// Mistakes in blockio classes.
TEST_F(BlockioConfigTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(ErrorOf("Weight: 5"),
            "f:1: classes.blockio.Classes.slow[0].Weight: 5 is smaller than minimum 10");
  EXPECT_THAT(ErrorOf("Weight: 2000"), HasSubstr("bigger than maximum 1000"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/sda], ThrottleReadBps: 5x"), HasSubstr("syntax error"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/sda], ThrottleReadBps: -1"), HasSubstr("syntax error"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/sda], ThrottleReadBps: 50m"),
              HasSubstr("\"50m\" is no amount such as 50M"));
  EXPECT_THAT(ErrorOf("ThrottleReadBps: 1M"), HasSubstr("slow[0].Devices: is missing"));
  EXPECT_THAT(ErrorOf("Devices: [sda], Weight: 10"), HasSubstr("\"sda\" is no glob of paths"));
  EXPECT_THAT(ErrorOf("Devices: ['/dev/sd[a'], Weight: 10"), HasSubstr("is no glob of paths"));
  EXPECT_THAT(ErrorOf("Devices: [/dev/../etc], Weight: 10"), HasSubstr("is no glob of paths"));
  EXPECT_THAT(ErrorOf("ThrottleReadBPS: 1"), HasSubstr("Devices: is missing")) << "in any case";
  EXPECT_THAT(ErrorOf("Speed: 1"), HasSubstr("slow[0].Speed: unknown key"));
  const auto status = Read("blockio: {Classes: {slow: {Weight: 10}}}").status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr("slow: must be a list, not a map"));
}

TEST_F(BlockioConfigTest, WhatIsShownIsReadAgain) {
  const BlockioConfig config =
      Read(
          "blockio: {Assign: runtime, Classes: {a: [{Devices: ['/dev/sd*'], ThrottleReadBps: 5k},"
          " {Weight: 20}], b: []}}")
          .value();
  EXPECT_EQ(ShownAndRead(config, DescribeBlockio), config);
}

using Kind = ClockRate::Kind;

StatusOr<CpuClassesConfig> ReadCpu(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const Config config, ParseConfig(text, "f", {}));
  return config.classes.cpu;
}

std::string CpuError(std::string_view item) {
  return std::string(Message(ReadCpu(fmt::format("classes: {{cpu: [{}]}}", item)).status()));
}

TEST(ClockRateTest, ReadsTheFormsOfNriPlugins) {
  for (const std::string_view text : {"3.2GHz", "3.2g", " 3.2 GHZ ", "3200MHz", "3200M", "3200000",
                                      "3200000kHz", "3200000k", "3200000.4"})
    EXPECT_EQ(ParseClockRate(text).value(), (ClockRate{Kind::kKilohertz, 3'200'000})) << text;
  EXPECT_EQ(ParseClockRate("Turbo").value().kind, Kind::kTurbo);
  EXPECT_EQ(ParseClockRate("BASE").value().kind, Kind::kBase);
  EXPECT_EQ(ParseClockRate("min").value().kind, Kind::kMin);
  EXPECT_EQ(ParseClockRate("75%").value(), (ClockRate{Kind::kPercent, 75}));
  for (const std::string_view text : {"", "0", "0MHz"})
    EXPECT_EQ(ParseClockRate(text).value(), ClockRate()) << text;
  for (const std::string_view text :
       {"-1", "0.4k", "fast", "3.2 GHz x", "1e30", "nan", "inf", "%", "101%", "GHz", "--3"})
    EXPECT_FALSE(ParseClockRate(text).ok()) << text;
}

TEST(ClockRateTest, TextsAreReadAgain) {
  for (const ClockRate rate :
       {ClockRate{Kind::kKilohertz, 800'000}, ClockRate{Kind::kPercent, 5}, ClockRate{Kind::kMin},
        ClockRate{Kind::kBase}, ClockRate{Kind::kTurbo}})
    EXPECT_EQ(ParseClockRate(TextOf(rate).value()).value(), rate);
}

TEST(CpuClassesConfigTest, ReadsEveryKey) {
  const StatusOr<CpuClassesConfig> config = ReadCpu(
      "classes:\n"
      "  turboDomain: system\n"
      "  cpu:\n"
      "  - {name: fast, minFreq: base, maxFreq: turbo, uncoreMinFreq: 1.2GHz, uncoreMaxFreq: "
      "2000MHz,\n"
      "     energyPerformancePreference: 0, freqGovernor: performance, boost: on,\n"
      "     disabledCstates: [C6, C8], maxLatencyUs: 10, turboPriority: 3}\n"
      "  - {name: plain}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->turbo_domain, CpuClassesConfig::TurboDomain::kSystem);
  const CpuClassConfig expected{.name = "fast",
                                .min_freq = {Kind::kBase},
                                .max_freq = {Kind::kTurbo},
                                .uncore_min_freq = {Kind::kKilohertz, 1'200'000},
                                .uncore_max_freq = {Kind::kKilohertz, 2'000'000},
                                .energy = "0",
                                .governor = "performance",
                                .boost = CpuClassConfig::Boost::kOn,
                                .disabled_cstates = {"C6", "C8"},
                                .max_latency_us = 10,
                                .turbo_priority = 3};
  EXPECT_EQ(*config->Find("fast"), expected);
  EXPECT_EQ(config->Find("none"), nullptr);
}

TEST(CpuClassesConfigTest, TakesProfilesOfThePowerManager) {
  const StatusOr<CpuClassesConfig> config = ReadCpu(
      "classes:\n"
      "  cpu:\n"
      "  - name: performance\n"
      "    pstates: {min: 2600, max: '90%', epp: performance, governor: powersave}\n"
      "    cstates: {names: {C1: true, C6: false}, maxLatencyUs: 50}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const CpuClassConfig& one = config->classes.at(0);
  EXPECT_EQ(one.min_freq, (ClockRate{Kind::kKilohertz, 2'600'000}));
  EXPECT_EQ(one.max_freq, (ClockRate{Kind::kPercent, 90}));
  EXPECT_EQ(one.energy, "performance");
  EXPECT_EQ(one.governor, "powersave");
  EXPECT_EQ(one.disabled_cstates, std::vector<std::string>{"C6"});
  EXPECT_EQ(one.max_latency_us, 50);
}

TEST(CpuClassesConfigTest, RefusesWhatCannotBe) {
  EXPECT_THAT(CpuError("{minFreq: 1GHz}"), HasSubstr("a class has no name"));
  EXPECT_THAT(CpuError("{name: a}, {name: a}"), HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(CpuError("{name: a, minFreq: fast}"), HasSubstr("is no clock rate"));
  EXPECT_THAT(CpuError("{name: a, energyPerformancePreference: 256}"), HasSubstr("from 0 to 255"));
  EXPECT_THAT(CpuError("{name: a, freqGovernor: a/b}"), HasSubstr("can be no governor"));
  EXPECT_NE(CpuError("{name: a, turboPriority: -1}"), "");
  EXPECT_NE(CpuError("{name: a, maxFreqs: 1}"), "");
}

// Those of nri-plugins for Intel's Speed Select, alone or together.
TEST(CpuClassesConfigTest, KeysOfSpeedSelectAreRefusedEachByItsName) {
  for (const char* const key :
       {"pctPriority: high", "pctPriority: low", "sstClosID: 0", "pctMinFreq: min",
        "pctMaxFreq: turbo", "publishExtendedResource: true", "publishExtendedResource: false"}) {
    const std::string name(key, std::string_view(key).find(':'));
    EXPECT_EQ(CpuError(fmt::format("{{name: a, maxFreq: turbo, {}}}", key)),
              fmt::format("f:1: classes.cpu[0].{}: is not supported: Speed Select is left alone; "
                          "remove it",
                          name));
  }
  const std::string both = CpuError("{name: a, pctPriority: high, sstClosID: 1}");
  EXPECT_NE(both.find("cpu[0].pctPriority"), std::string::npos) << both;
  EXPECT_NE(both.find("cpu[0].sstClosID"), std::string::npos) << both;
}

TEST(CpuClassesConfigTest, ALeastClockAboveTheHighestIsRefused) {
  EXPECT_EQ(CpuError("{name: a, minFreq: 3GHz, maxFreq: 1GHz}"),
            "f:1: classes.cpu[0].minFreq: 3000000kHz is above the highest rate, 1000000kHz");
  for (const char* const rates : {"uncoreMinFreq: 60%, uncoreMaxFreq: 50%",
                                  "minFreq: turbo, maxFreq: base", "pstates: {min: 2, max: 1}"})
    EXPECT_NE(CpuError(fmt::format("{{name: a, {}}}", rates)).find("is above"), std::string::npos)
        << rates;
  for (const char* const rates :
       {"minFreq: base, maxFreq: base", "minFreq: min, maxFreq: turbo", "minFreq: 3GHz",
        "minFreq: 3GHz, maxFreq: base", "minFreq: 90%, maxFreq: 1GHz", "maxFreq: 1GHz"})
    EXPECT_EQ(CpuError(fmt::format("{{name: a, {}}}", rates)), "") << rates;
}

TEST(CpuClassesConfigTest, APolicysClassesWinByName) {
  CpuClassesConfig config{.classes = {{.name = "a"}, {.name = "b"}}};
  AddPolicyCpuClasses({.classes = {{.name = "b", .turbo_priority = 1}, {.name = "c"}},
                       .turbo_domain = CpuClassesConfig::TurboDomain::kSystem},
                      config);
  ASSERT_EQ(config.classes.size(), 3U);
  EXPECT_EQ(config.classes[0].name, "a");
  EXPECT_EQ(config.classes[2].name, "c");
  EXPECT_EQ(config.Find("b")->turbo_priority, 1);
  EXPECT_EQ(config.turbo_domain, CpuClassesConfig::TurboDomain::kSystem);
}

using Policy = SchedulerSettings::Policy;

class SchedulingConfigTest : public testing::Test {
 protected:
  static StatusOr<SchedulingConfig> Read(std::string_view text) {
    return ReadClasses(text, DescribeScheduling);
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
  const SchedulingConfig config =
      Read(
          "scheduling: [{name: a, policy: deadline, runtime: 1ms, deadline: 2ms, period: 3ms,"
          " flags: [reclaim]}, {name: b, nice: 3, ioClass: be, ioPriority: 0, burst: 100%}]")
          .value();
  EXPECT_EQ(ShownAndRead(config, DescribeScheduling), config);
}

}  // namespace
}  // namespace resmgr
