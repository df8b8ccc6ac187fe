// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_classes_config.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pkg/config/config.h"

namespace resmgr {
namespace {

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
  EXPECT_NE(CpuError("{minFreq: 1GHz}").find("a class has no name"), std::string::npos);
  EXPECT_NE(CpuError("{name: a}, {name: a}").find("\"a\" is there twice"), std::string::npos);
  EXPECT_NE(CpuError("{name: a, minFreq: fast}").find("is no clock rate"), std::string::npos);
  EXPECT_NE(CpuError("{name: a, energyPerformancePreference: 256}").find("from 0 to 255"),
            std::string::npos);
  EXPECT_NE(CpuError("{name: a, freqGovernor: a/b}").find("can be no governor"), std::string::npos);
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
  EXPECT_EQ(config.Names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(config.Find("b")->turbo_priority, 1);
  EXPECT_EQ(config.turbo_domain, CpuClassesConfig::TurboDomain::kSystem);
}

}  // namespace
}  // namespace resmgr
