// SPDX-License-Identifier: Apache-2.0
// Classes of CPUs on the files of a machine whose kernel refuses what real ones refuse.

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/cpu_machine.h"
#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kCpus = 16;

// Two packages with CPUs 0-7 and 8-15; 0.8 GHz to 3.8 GHz, nominally 2.9 GHz.
class CpuPlanTest : public test::KeeperTest {
 protected:
  CpuPlanTest() {
    auto& tree = files_.tree;
    tree["sys/devices/system/cpu/online"] = "0-15\n";
    for (int cpu = 0; cpu < kCpus; ++cpu) {
      tree[CpuFile(cpu, "topology/physical_package_id")] = fmt::format("{}\n", cpu / 8);
      tree[CpuFile(cpu, "topology/die_id")] = "0\n";
      tree[Clock(cpu, "cpuinfo_min_freq")] = "800000\n";
      tree[Clock(cpu, "cpuinfo_max_freq")] = "3800000\n";
      tree[Clock(cpu, "base_frequency")] = "2900000\n";
      tree[Clock(cpu, "scaling_min_freq")] = "800000\n";
      tree[Clock(cpu, "scaling_max_freq")] = "3800000\n";
      tree[Clock(cpu, "scaling_governor")] = "powersave\n";
      tree[Clock(cpu, "scaling_driver")] = "intel_pstate\n";
      tree[Clock(cpu, "scaling_available_governors")] = "performance powersave\n";
      tree[Clock(cpu, "energy_performance_preference")] = "balance_performance\n";
      tree[Clock(cpu, "energy_performance_available_preferences")] =
          "default performance balance_performance balance_power power\n";
      tree[Clock(cpu, "related_cpus")] = fmt::format("{}\n", cpu);
      int state = 0;
      for (const char* const name : {"POLL", "C1E", "C2", "C4", "C8"}) {
        const std::string directory = CpuFile(cpu, fmt::format("cpuidle/state{}/", state));
        tree[directory + "name"] = fmt::format("{}\n", name);
        tree[directory + "latency"] = fmt::format("{}\n", state * 20);
        tree[directory + "disable"] = "0\n";
        ++state;
      }
    }
    for (const char* const package : {"00", "01"}) {
      const std::string directory = fmt::format("{}/package_{}_die_00/", kUncoreFiles, package);
      for (const char* const file : {"min_freq_khz", "initial_min_freq_khz"})
        tree[directory + file] = "800000\n";
      for (const char* const file : {"max_freq_khz", "initial_max_freq_khz"})
        tree[directory + file] = "2400000\n";
    }
    files_.on_write = [this](const std::string& path, std::string_view text) { Look(path, text); };
    config_.cpu.classes = {
        {.name = "default-turbo", .max_freq = kTurbo},
        {.name = "default-noturbo", .max_freq = kBase},
        {.name = "turbo-low", .min_freq = kTurbo, .max_freq = kTurbo, .turbo_priority = 1},
        {.name = "turbo-high", .min_freq = kTurbo, .max_freq = kTurbo, .turbo_priority = 10}};
    // The kernel ends each text with a newline.
    files_.keeps = [](std::string_view, std::string_view text) {
      return fmt::format("{}\n", Trim(text));
    };
    before_ = tree;
  }
  static std::string Clock(int cpu, std::string_view file) {
    return CpuFile(cpu, fmt::format("cpufreq/{}", file));
  }
  // Refuses writes as kernels do: the least rate may not pass the highest one, and the governor
  // performance allows no preference.
  void Look(const std::string& path, std::string_view text) {
    const std::string directory = path.substr(0, path.rfind('/') + 1);
    const auto number = [&](const std::string& file) {
      return std::stoll(files_.tree.at(directory + file));
    };
    int error = 0;
    for (const auto& [min, max] : {std::pair("scaling_min_freq", "scaling_max_freq"),
                                   std::pair("min_freq_khz", "max_freq_khz")}) {
      if (path == directory + min && std::stoll(std::string(text)) > number(max)) error = EINVAL;
      if (path == directory + max && std::stoll(std::string(text)) < number(min)) error = EINVAL;
    }
    if (path.ends_with("energy_performance_preference") &&
        files_.tree.at(directory + "scaling_governor").starts_with("performance"))
      error = EBUSY;
    if (error != 0) ++refused_;
    files_.refuses[path] = error;
  }

  ClassPool Pool(const std::string& name, const CpuSet& cpus, const std::string& cpu_class) {
    return {.name = name, .cpus = cpus, .classes = {{"cpu", cpu_class}}};
  }
  // A container in a pool with this class.
  ClassSubject In(const std::string& pool, const std::string& cpu_class) {
    ClassSubject subject{.container = "ns/pod/" + pool, .id = "id-" + pool, .pool = pool};
    subject.chosen.by_name["cpu"] = {.name = cpu_class, .source = "pool " + pool};
    return subject;
  }
  ClassSubject Own(const CpuSet& cpus, const std::string& cpu_class) {
    ClassSubject subject = In(fmt::format("own{}", cpus.First()), cpu_class);
    subject.cpus = cpus;
    subject.chosen.by_name["cpu"].by_pod = true;
    return subject;
  }
  ClassReport Apply(const std::vector<ClassSubject>& subjects,
                    const std::vector<ClassPool>& pools) {
    files_.written.clear();
    return Run({kind_.get()}, subjects, pools);
  }
  static std::string ReasonOf(const ClassReport& report, std::string_view name) {
    return StateOf(report, name).reason;
  }
  void ExpectGivenBack() {
    EXPECT_TRUE(Apply({}, {}).not_given_back.empty());
    EXPECT_EQ(files_.tree, before_);
    EXPECT_EQ(refused_, 0);
  }
  std::string At(const std::string& path) const { return std::string(Trim(files_.tree.at(path))); }
  std::string Max(int cpu) const { return At(Clock(cpu, "scaling_max_freq")); }
  std::string Min(int cpu) const { return At(Clock(cpu, "scaling_min_freq")); }
  CpuClassConfig& Add(CpuClassConfig one) {
    return config_.cpu.classes.emplace_back(std::move(one));
  }

  static constexpr const char* kUncoreFiles = "sys/devices/system/cpu/intel_uncore_frequency";
  static constexpr ClockRate kTurbo{ClockRate::Kind::kTurbo};
  static constexpr ClockRate kBase{ClockRate::Kind::kBase};

  int refused_ = 0;
  const std::unique_ptr<ClassKind> kind_ = MakeCpuKind();
};

// Rows of nri-plugins' test18: CPUs 2-7 and 10-13, of which 10 is reserved.
TEST_F(CpuPlanTest, TurboIsForTheHighestPriorityInUse) {
  config_.cpu.turbo_domain = CpuClassesConfig::TurboDomain::kSystem;
  const ClassPool reserved = Pool("reserved[0]", {10}, "default-turbo");
  const CpuSet rest = {2, 3, 4, 5, 6, 7, 11, 12, 13};
  const auto idle = [&](const CpuSet& used) {
    return Pool("idle", rest - used, "default-noturbo");
  };
  const ClassPool low = Pool("low[0]", {2}, "turbo-low");
  const ClassPool high = Pool("high[0]", {3}, "turbo-high");

  Apply({}, {reserved, idle({})});
  EXPECT_EQ(Max(10), "3800000");
  for (const int cpu : rest)
    EXPECT_EQ(Max(cpu), "2900000") << cpu;

  Apply({In("low[0]", "turbo-low")}, {reserved, low, idle({2})});
  EXPECT_EQ(Min(2) + Max(2), "38000003800000");
  EXPECT_EQ(Max(10), "2900000");
  ClassSubject second = In("low[0]", "turbo-low");
  second.id = "second";
  Apply({In("low[0]", "turbo-low"), second}, {reserved, low, idle({2})});
  EXPECT_THAT(files_.written, IsEmpty());

  Apply({In("low[0]", "turbo-low"), In("high[0]", "turbo-high")},
        {reserved, low, high, idle({2, 3})});
  EXPECT_EQ(Min(3) + Max(3), "38000003800000");
  EXPECT_EQ(Min(2) + Max(2), "29000002900000");
  EXPECT_THAT(files_.written, Not(Contains(HasSubstr("cpu10/"))));

  Apply({In("low[0]", "turbo-low")}, {reserved, low, idle({2})});
  EXPECT_EQ(Min(2) + Max(2), "38000003800000");
  EXPECT_EQ(Min(3) + Max(3), "8000002900000");
  EXPECT_THAT(files_.written, Not(Contains(HasSubstr("cpu10/"))));

  Apply({}, {reserved, idle({})});
  EXPECT_EQ(Max(10), "3800000");
  for (const int cpu : {0, 1, 8, 9, 14, 15})
    EXPECT_EQ(Max(cpu) + Min(cpu), "3800000800000") << "never outside of the pools";

  config_.cpu.classes[1].max_freq = kTurbo;
  Apply({}, {reserved, idle({})});
  EXPECT_EQ(Max(11), "3800000") << "an edited class is rewritten at once";
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, EachPackageHasItsOwnTurboByDefault) {
  const std::vector<ClassPool> pools = {Pool("reserved[0]", {10}, "default-turbo"),
                                        Pool("high[0]", {3}, "turbo-high")};
  Apply({In("high[0]", "turbo-high")}, pools);
  EXPECT_EQ(Max(3) + Max(10), "38000003800000");
  config_.cpu.turbo_domain = CpuClassesConfig::TurboDomain::kSystem;
  Apply({In("high[0]", "turbo-high")}, pools);
  EXPECT_EQ(Max(10), "2900000");
  ExpectGivenBack();
}

// Row of test17.
TEST_F(CpuPlanTest, IdleStatesAreDisabledByNameAndByLatency) {
  Add({.name = "awake", .disabled_cstates = {"C4", "C6", "C8", "C10"}});
  Add({.name = "quick", .max_latency_us = 20});
  const auto states = [this](int cpu) {
    std::string all;
    for (int state = 0; state < 5; ++state)
      all += At(CpuFile(cpu, fmt::format("cpuidle/state{}/disable", state)));
    return all;
  };
  Apply({}, {Pool("a", {2, 3}, "awake"), Pool("b", {4}, "quick")});
  EXPECT_EQ(states(2), "00011");
  EXPECT_EQ(states(4), "00111");
  Apply({}, {Pool("a", {2}, "awake")});
  EXPECT_EQ(states(3), "00000") << "a freed CPU has all of them";
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, RatesNeverPassEachOther) {
  Add({.name = "slow",
       .min_freq = {ClockRate::Kind::kMin},
       .max_freq = {ClockRate::Kind::kKilohertz, 1'000'000}});
  Add({.name = "fast", .min_freq = {ClockRate::Kind::kKilohertz, 3'000'000}, .max_freq = kTurbo});
  Add({.name = "capped", .max_freq = {ClockRate::Kind::kPercent, 10}});
  Add({.name = "beyond", .max_freq = {ClockRate::Kind::kKilohertz, 9'000'000}});
  for (const char* const name : {"slow", "fast", "slow", "capped", "fast", "capped", "beyond"})
    EXPECT_TRUE(Apply({}, {Pool("a", {2}, name)}).classes.at(0).active) << name;
  EXPECT_EQ(Max(2), "3800000") << "as much as the CPU can";
  Apply({}, {Pool("a", {2}, "slow")});
  ExpectGivenBack();
  // The value of before is lower than the one that a class wants, and higher.
  for (const char* const name : {"slow", "fast"}) {
    files_.tree[Clock(2, "scaling_min_freq")] = "1500000\n";
    files_.tree[Clock(2, "scaling_max_freq")] = "2000000\n";
    before_ = files_.tree;
    Apply({}, {Pool("a", {2}, name)});
    ExpectGivenBack();
  }
}

TEST_F(CpuPlanTest, TheNominalClockIsEachCpusOwnFromWhereItsDriverHasIt) {
  const auto erase = [this](int cpu) { files_.tree.erase(Clock(cpu, "base_frequency")); };
  for (const int cpu : {3, 4, 5})
    erase(cpu);
  files_.tree[CpuFile(3, "acpi_cppc/nominal_freq")] = "2500\n";  // MHz
  files_.tree[CpuFile(5, "acpi_cppc/nominal_freq")] = "9000\n";
  files_.tree[Clock(6, "base_frequency")] = "1800000\n";  // a core of another kind
  before_ = files_.tree;
  Apply({}, {Pool("a", {2, 3, 4, 5, 6}, "default-noturbo")});
  EXPECT_EQ(Max(2), "2900000");
  EXPECT_EQ(Max(3), "2500000");
  EXPECT_EQ(Max(4), "3800000") << "without one it is the highest";
  EXPECT_EQ(Max(5), "3800000") << "as much as the CPU can";
  EXPECT_EQ(Max(6), "1800000");
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, TheEnergyPreferenceIsWrittenWhileTheGovernorLetsIt) {
  Add({.name = "saving", .energy = "power", .governor = "powersave"});
  Add({.name = "performing", .energy = "power", .governor = "performance"});
  Add({.name = "odd", .energy = "balanced"});
  files_.tree[Clock(2, "scaling_governor")] = "performance\n";
  before_ = files_.tree;
  EXPECT_TRUE(Apply({}, {Pool("a", {2}, "saving")}).classes.at(0).active);
  EXPECT_EQ(At(Clock(2, "energy_performance_preference")), "power");
  EXPECT_TRUE(Apply({}, {}).not_given_back.empty());
  EXPECT_EQ(At(Clock(2, "scaling_governor")), "performance");
  files_.tree = before_;
  ClassReport report = Apply({}, {Pool("a", {3}, "performing")});
  EXPECT_THAT(ReasonOf(report, "performing"), HasSubstr("under the governor performance"));
  EXPECT_EQ(At(Clock(3, "scaling_governor")), "performance");
  report = Apply({}, {Pool("a", {4}, "odd")});
  EXPECT_THAT(ReasonOf(report, "odd"), HasSubstr("has no energy preference balanced: it has"));
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, CpusOfOneClockHaveTheHighestOfTheirRates) {
  for (const int cpu : {2, 3})
    files_.tree[Clock(cpu, "related_cpus")] = "2 3\n";
  before_ = files_.tree;
  const ClassReport report =
      Apply({}, {Pool("a", {2}, "default-noturbo"), Pool("b", {3}, "default-turbo")});
  EXPECT_EQ(Max(2), "3800000");
  EXPECT_EQ(report.classes.size(), 4U);
  const ClassReport alone = Apply({}, {Pool("a", {3}, "default-noturbo")});
  EXPECT_THAT(ReasonOf(alone, "default-noturbo"),
              HasSubstr("CPU 3 has its clock in common with CPU 2, which has no"));
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, BoostIsOfOneClockOrOfTheMachine) {
  Add({.name = "on", .boost = CpuClassConfig::Boost::kOn});
  Add({.name = "off", .boost = CpuClassConfig::Boost::kOff});
  files_.tree["sys/devices/system/cpu/intel_pstate/no_turbo"] = "0\n";
  before_ = files_.tree;
  Apply({}, {Pool("a", {2}, "off")});
  EXPECT_EQ(At("sys/devices/system/cpu/intel_pstate/no_turbo"), "1");
  const ClassReport report = Apply({}, {Pool("a", {2}, "off"), Pool("b", {3}, "on")});
  EXPECT_THAT(ReasonOf(report, "off"), HasSubstr("one switch for boost"));
  EXPECT_EQ(At("sys/devices/system/cpu/intel_pstate/no_turbo"), "0");
  for (const int cpu : {2, 3})
    files_.tree[Clock(cpu, "boost")] = "1\n";
  before_ = files_.tree;
  Apply({}, {Pool("a", {2}, "off"), Pool("b", {3}, "on")});
  EXPECT_EQ(At(Clock(2, "boost")) + At(Clock(3, "boost")), "01");
  ExpectGivenBack();
  files_.tree.erase("sys/devices/system/cpu/intel_pstate/no_turbo");
  files_.tree["sys/devices/system/cpu/cpufreq/boost"] = "1\n";
  before_ = files_.tree;
  Apply({}, {Pool("a", {4}, "off")});
  EXPECT_EQ(At("sys/devices/system/cpu/cpufreq/boost"), "0");
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, TheUncoreClockHasTheHighestOfItsDie) {
  Add({.name = "quiet", .uncore_max_freq = {ClockRate::Kind::kKilohertz, 1'200'000}});
  Add({.name = "loud",
       .uncore_min_freq = {ClockRate::Kind::kKilohertz, 1'600'000},
       .uncore_max_freq = {ClockRate::Kind::kKilohertz, 5'000'000}});
  const std::string first = fmt::format("{}/package_00_die_00/", kUncoreFiles);
  const std::string second = fmt::format("{}/package_01_die_00/", kUncoreFiles);
  Apply({}, {Pool("a", {2, 9}, "quiet"), Pool("b", {3}, "loud")});
  EXPECT_EQ(At(first + "min_freq_khz") + At(first + "max_freq_khz"), "16000002400000");
  EXPECT_EQ(At(second + "max_freq_khz"), "1200000");
  ExpectGivenBack();
  // Newer machines have several of a package.
  for (const char* const name : {"uncore00", "uncore01"}) {
    const std::string directory = fmt::format("{}/{}/", kUncoreFiles, name);
    files_.tree[directory + "package_id"] = "0\n";
    for (const char* const file : {"min_freq_khz", "initial_min_freq_khz"})
      files_.tree[directory + file] = "800000\n";
    for (const char* const file : {"max_freq_khz", "initial_max_freq_khz"})
      files_.tree[directory + file] = "2400000\n";
  }
  before_ = files_.tree;
  Apply({}, {Pool("a", {2}, "quiet")});
  EXPECT_EQ(At(fmt::format("{}/uncore01/max_freq_khz", kUncoreFiles)), "1200000");
  EXPECT_EQ(At(first + "max_freq_khz"), "2400000") << "these stand for the same clocks";
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, AContainersOwnClassWinsOverItsPools) {
  const ClassReport report =
      Apply({Own({2, 3}, "turbo-low")}, {Pool("shared", {2, 3, 4}, "default-noturbo")});
  EXPECT_EQ(Max(2) + Max(4), "38000002900000");
  ASSERT_EQ(report.containers.at("id-own2").size(), 1U);
  EXPECT_EQ(report.containers.at("id-own2")[0].name, "turbo-low");
  EXPECT_EQ(report.containers.at("id-own2")[0].way, "by CPU");
  const ClassReport none = Apply({Own({}, "turbo-low")}, {});
  EXPECT_THAT(none.containers.at("id-own-1")[0].reason, HasSubstr("no CPUs of its own"));
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, AClassThatSomeContainersLackIsNoProblemOfTheOthers) {
  const auto turbo_of = [](const ClassReport& report) { return StateOf(report, "turbo-low"); };
  const ClassState turbo = turbo_of(Apply({Own({2, 3}, "turbo-low"), Own({}, "turbo-low")}, {}));
  EXPECT_FALSE(turbo.active);
  EXPECT_THAT(turbo.containers, ElementsAre("ns/pod/own2", "ns/pod/own-1"));
  EXPECT_THAT(turbo.hit(), ElementsAre("ns/pod/own-1"));
  EXPECT_EQ(turbo.Why(), "ns/pod/own-1: the container has no CPUs of its own");
  EXPECT_EQ(turbo_of(Apply({Own({}, "turbo-low")}, {})).Why(),
            "the container has no CPUs of its own");
  ExpectGivenBack();
}

// Balloons names it for CPUs in no balloon, whether there is one or not.
TEST_F(CpuPlanTest, TheClassDefaultCountsWhereThereIsOne) {
  const std::vector<ClassPool> pools = {Pool("idle", {2, 3}, "default")};
  const ClassReport none = Apply({}, pools);
  EXPECT_THAT(files_.written, IsEmpty());
  EXPECT_TRUE(std::ranges::all_of(none.classes, &ClassState::active));
  EXPECT_EQ(ReasonOf(none, "default"), "there is no such class");
  Add({.name = "default", .max_freq = kBase});
  Apply({}, pools);
  EXPECT_EQ(Max(2) + Max(3), "29000002900000");
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, WhatTheMachineLacksIsInactiveWithTheFile) {
  std::erase_if(files_.tree, [](const auto& file) {
    return file.first.find("cpufreq") != std::string::npos ||
           file.first.find("uncore") != std::string::npos ||
           file.first.find("cpuidle") != std::string::npos;
  });
  Add({.name = "u", .uncore_max_freq = kBase});
  Add({.name = "i", .max_latency_us = 1});
  before_ = files_.tree;
  const ClassReport report =
      Apply({}, {Pool("a", {2}, "turbo-low"), Pool("b", {3}, "u"), Pool("c", {4}, "i")});
  EXPECT_THAT(ReasonOf(report, "turbo-low"), HasSubstr("cpu2/cpufreq/cpuinfo_max_freq"));
  EXPECT_THAT(ReasonOf(report, "u"), HasSubstr("intel_uncore_frequency"));
  EXPECT_THAT(ReasonOf(report, "i"), HasSubstr("cpu4/cpuidle"));
  ExpectGivenBack();
}

TEST_F(CpuPlanTest, ARefusedWriteIsToldAndTriedAgain) {
  files_.on_write = nullptr;
  files_.refuses[Clock(2, "scaling_max_freq")] = EROFS;
  const std::vector<ClassPool> pools = {Pool("a", {2}, "default-noturbo")};
  EXPECT_FALSE(Apply({}, pools).classes.at(0).active);
  files_.refuses.clear();
  EXPECT_TRUE(Apply({}, pools).classes.at(0).active);
  EXPECT_EQ(Max(2), "2900000");
  ExpectGivenBack();
}

// For any classes on any CPUs, each CPU has the values of its class, no write is refused, and no
// value is left at the end.
TEST_F(CpuPlanTest, AnyClassesAreInForceAndGivenBack) {
  std::minstd_rand random(11);
  config_.cpu.classes.clear();
  for (int i = 0; i < 6; ++i) {
    const int64_t low = 800'000 + static_cast<int64_t>(random() % 30) * 100'000;
    Add({.name = fmt::format("c{}", i),
         .min_freq = random() % 2 == 0 ? ClockRate() : ClockRate{ClockRate::Kind::kKilohertz, low},
         .max_freq =
             random() % 3 == 0
                 ? kTurbo
                 : ClockRate{ClockRate::Kind::kKilohertz,
                             std::min<int64_t>(3'800'000,
                                               low + static_cast<int64_t>(random() % 5) * 100'000)},
         .energy = random() % 2 == 0 ? "" : "power",
         .governor = random() % 2 == 0 ? "" : "powersave",
         .turbo_priority = static_cast<int64_t>(random() % 3)});
  }
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, CpuSet> cpus;
    for (int cpu = 0; cpu < kCpus; ++cpu)
      if (random() % 3 != 0) cpus[fmt::format("c{}", random() % 6)].Add(cpu);
    std::vector<ClassPool> pools;
    std::vector<ClassSubject> subjects;
    for (const auto& [name, own] : cpus) {
      pools.push_back(Pool(name, own, name));
      subjects.push_back(In(name, name));
    }
    Apply(subjects, pools);
    ASSERT_EQ(refused_, 0) << "round " << round;
    for (const auto& [name, own] : cpus) {
      const CpuClassConfig& one = *config_.cpu.Find(name);
      for (const int cpu : own) {
        int64_t highest = 0;
        for (const auto& [other, others] : cpus)
          for (const int beside : others)
            if (beside / 8 == cpu / 8)
              highest = std::max(highest, config_.cpu.Find(other)->turbo_priority);
        const bool turbo = one.turbo_priority == highest;
        const int64_t max =
            one.max_freq == kTurbo ? (turbo ? 3'800'000 : 2'900'000) : one.max_freq.value;
        EXPECT_EQ(Max(cpu), fmt::format("{}", max)) << cpu;
        const int64_t min = one.min_freq == ClockRate() ? 800'000 : one.min_freq.value;
        EXPECT_EQ(Min(cpu), fmt::format("{}", std::min(min, max))) << cpu;
      }
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  ExpectGivenBack();
}

}  // namespace
}  // namespace resmgr
