// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_wish.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kind.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Interrupts = IsolationConfig::Interrupts;
using Quota = IsolationConfig::Quota;

class IsolationWishTest : public testing::Test {
 protected:
  static Pod MakePod(std::initializer_list<StringMap::value_type> annotations) {
    Pod pod;
    pod.namespace_name = "telco";
    pod.annotations = StringMap(annotations);
    return pod;
  }
  StatusOr<IsolationWish> Wish(std::initializer_list<StringMap::value_type> annotations,
                               std::string_view container = "main") const {
    return IsolationOf(MakePod(annotations), container, config_);
  }
  std::string ErrorOf(std::initializer_list<StringMap::value_type> annotations) const {
    return std::string(Message(Wish(annotations).status()));
  }

  ClassesConfig config_{.isolation = {.interrupts = Interrupts::kIsolate},
                        .namespaces = {{"isolation", {"tel*"}}}};
};

TEST_F(IsolationWishTest, TheConfigurationIsForAll) {
  const IsolationWish wish = Wish({}).value();
  EXPECT_EQ(wish.isolation, config_.isolation);
  EXPECT_EQ(wish.source, "classes.isolation");
  EXPECT_EQ(Wish({{"other", "1"}}).value(), wish);
}

TEST_F(IsolationWishTest, AnAnnotationChangesWhatItNames) {
  const IsolationWish wish =
      Wish({{"isolation.resource-policy.nri.io/pod", "{Quota: lift, MaxLatency: 10us}"}}).value();
  const IsolationConfig expected{
      .interrupts = Interrupts::kIsolate, .quota = Quota::kLift, .max_latency = "10"};
  EXPECT_EQ(wish.isolation, expected);
  EXPECT_EQ(wish.source, "annotation isolation.resource-policy.nri.io/pod");
  EXPECT_EQ(
      Wish({{"isolation.resource-policy.nri.io/container.main", "{Interrupts: leave}"}})->isolation,
      IsolationConfig());
  EXPECT_EQ(Wish({{"isolation.resource-policy.nri.io/container.other", "{Interrupts: leave}"}})
                ->isolation,
            config_.isolation);
}

TEST_F(IsolationWishTest, CrioAnnotationsHaveTheirExactValues) {
  const auto latency = [this](std::string_view value) {
    return Wish({{"cpu-c-states.crio.io", value}})->isolation.max_latency;
  };
  EXPECT_EQ(latency("disable"), "n/a");
  EXPECT_EQ(latency("enable"), "0");
  EXPECT_EQ(latency("max_latency:10"), "10");
  config_.isolation = {};
  EXPECT_EQ(Wish({{"irq-load-balancing.crio.io", "disable"}})->isolation.interrupts,
            Interrupts::kIsolate);
  EXPECT_EQ(Wish({{"cpu-quota.crio.io", "disable"}})->isolation.quota, Quota::kLift);
  EXPECT_EQ(Wish({{"cpu-load-balancing.crio.io", "disable"}})->isolation.partition,
            IsolationConfig::Partition::kIsolated);
  EXPECT_EQ(Wish({{"cpu-freq-governor.crio.io", "performance"}})->isolation.governor,
            "performance");
  EXPECT_EQ(Wish({{"cpu-freq-governor.crio.io", "performance"},
                  {"cpu-freq-governor.crio.io/main", "powersave"}})
                ->isolation.governor,
            "powersave");
}

TEST_F(IsolationWishTest, CrioAnnotationsAskForVariables) {
  EXPECT_TRUE(Wish({{"cpu-shared.crio.io/main", "enable"}})->tells_shared);
  EXPECT_FALSE(Wish({{"cpu-shared.crio.io/other", "enable"}})->tells_shared);
  EXPECT_EQ(ErrorOf({{"cpu-shared.crio.io/main", "disable"}}),
            "annotation cpu-shared.crio.io/main: \"disable\" is not enable");
  EXPECT_TRUE(Wish({{"irq-load-balancing.crio.io", "housekeeping"}})->tells_housekeeping);
  EXPECT_FALSE(Wish({{"irq-load-balancing.crio.io", "disable"}})->tells_housekeeping);
  config_.isolation.interrupts = Interrupts::kHousekeeping;
  EXPECT_FALSE(Wish({})->tells_housekeeping) << "CRI-O's programs alone know the variable";
}

TEST_F(IsolationWishTest, InterruptsOfTheContainerAreForAllowedNamespaces) {
  constexpr const char* kKey = "irq-affinity.resource-policy.nri.io/container.main";
  const IsolationWish wish = Wish({{kKey, "claim: [eth0]"}}).value();
  EXPECT_EQ(wish.affinity.claim, std::vector<std::string>{"eth0"});
  EXPECT_EQ(wish.isolation, config_.isolation) << "the configuration counts as well";
  EXPECT_EQ(wish.source, std::string("annotation ") + kKey);
  EXPECT_THAT(ErrorOf({{kKey, "claim: [eth0], x"}}), HasSubstr("irq-affinity"));
  config_.isolation = {};
  EXPECT_TRUE(Wish({{kKey, "claim: [eth0]"}})->any());
  EXPECT_FALSE(Wish({{kKey, "{}"}})->any());
  config_.namespaces["isolation"] = {"kube-*"};
  EXPECT_FALSE(Wish({{kKey, "{mode: x}"}})->any());
  EXPECT_THAT(Wish({{kKey, "claim: [eth0]"}})->note,
              HasSubstr("ignored: namespace telco is not in classes.AllowedNamespaces.isolation"));
}

TEST_F(IsolationWishTest, InterruptsOfAContainerWithoutCpusOfItsOwnAreNoted) {
  const std::unique_ptr<ClassKind> kind = MakeIsolationKind({});
  const test::ClassedPod classed{
      .pod = MakePod({{"irq-affinity.resource-policy.nri.io/pod", "mask: ['*']"}})};
  ChosenClasses chosen;
  EXPECT_TRUE(kind->Choose(classed.container(), config_, chosen).ok());
  EXPECT_FALSE(chosen.any());
  EXPECT_EQ(chosen.note, "annotation irq-affinity: the container has no CPUs of its own");
}

TEST_F(IsolationWishTest, VariablesTellTheCpusOfTheContainer) {
  const Machine machine = test::S1Ht();  // cores {0,4} {1,5} {2,6} {3,7}
  const std::unique_ptr<ClassKind> kind = MakeIsolationKind({.machine = &machine});
  test::ClassedPod classed{.pod = MakePod({{"cpu-shared.crio.io/main", "enable"},
                                           {"irq-load-balancing.crio.io", "housekeeping"}})};
  Placement& placement = classed.placement;
  const auto chosen = [&] {
    ChosenClasses all;
    EXPECT_TRUE(kind->Choose(classed.container(), config_, all).ok());
    return all;
  };
  EXPECT_TRUE(chosen().isolation.environment.empty()) << "it has no CPUs of its own";
  placement.exclusive = CpuSet{1, 2, 5};
  placement.cpus = CpuSet{0, 1, 2, 4, 5};
  const ChosenClasses mixed = chosen();
  const StringMap expected({{"OPENSHIFT_HOUSEKEEPING_CPUS", "1,5"},
                            {"OPENSHIFT_ISOLATED_CPUS", "1-2,5"},
                            {"OPENSHIFT_SHARED_CPUS", "0,4"}});
  EXPECT_EQ(mixed.isolation.environment, expected);
  Adjustment adjustment;
  kind->AtCreation(mixed, config_, true, adjustment);
  ASSERT_NE(adjustment.wide(), nullptr);
  EXPECT_EQ(adjustment.wide()->environment.Find("OPENSHIFT_SHARED_CPUS")->value, "0,4");
  placement.cpus = placement.exclusive;
  EXPECT_FALSE(chosen().isolation.environment.contains("OPENSHIFT_SHARED_CPUS"));
  EXPECT_THAT(chosen().note, HasSubstr("the policy gives the container no shared CPUs"));
}

TEST_F(IsolationWishTest, AnUnknownValueIsRefused) {
  for (const char* const wrong : {"max_latency:0", "max_latency:-1", "foo", "", "max_latency:"}) {
    EXPECT_EQ(ErrorOf({{"cpu-c-states.crio.io", wrong}}),
              fmt::format("annotation cpu-c-states.crio.io: \"{}\" is not disable, enable or "
                          "max_latency:MICROSECONDS",
                          wrong));
  }
  EXPECT_THAT(ErrorOf({{"irq-load-balancing.crio.io", "balance"}}),
              HasSubstr("annotation irq-load-balancing.crio.io: \"balance\" is not disable or"));
  EXPECT_EQ(Wish({{"irq-load-balancing.crio.io", "housekeeping"}})->isolation.interrupts,
            IsolationConfig::Interrupts::kHousekeeping);
  EXPECT_THAT(ErrorOf({{"cpu-freq-governor.crio.io/main", "../x"}}),
              HasSubstr("annotation cpu-freq-governor.crio.io/main"));
  EXPECT_THAT(ErrorOf({{"isolation.resource-policy.nri.io", "{Interrupt: isolate}"}}),
              HasSubstr("isolation.Interrupt: unknown key"));
  EXPECT_THAT(ErrorOf({{"isolation.resource-policy.nri.io", "{Interrupts: off}"}}),
              HasSubstr("isolation.Interrupts"));
}

TEST_F(IsolationWishTest, WhatThePodItselfAsksForIsKnownWhereAbsentClassesAreRefused) {
  const std::initializer_list<StringMap::value_type> annotations = {
      {"isolation.resource-policy.nri.io", "{Interrupts: isolate, MaxLatency: 10us}"},
      {"cpu-c-states.crio.io", "disable"}};
  EXPECT_EQ(Wish(annotations)->asked, IsolationConfig());
  config_.absent = ClassesConfig::Absent::kRefuse;
  const IsolationConfig expected{.interrupts = Interrupts::kIsolate, .max_latency = "n/a"};
  EXPECT_EQ(Wish(annotations)->asked, expected);
  EXPECT_EQ(Wish({})->asked, IsolationConfig());
  config_.namespaces["isolation"] = {"kube-*"};
  EXPECT_EQ(Wish(annotations)->asked, IsolationConfig());
}

TEST_F(IsolationWishTest, OfOtherNamespacesAnnotationsDoNotCount) {
  config_.namespaces["isolation"] = {"kube-*"};
  const IsolationWish wish =
      Wish({{"cpu-quota.crio.io", "foo"}, {"irq-load-balancing.crio.io", "disable"}}).value();
  EXPECT_EQ(wish.isolation, config_.isolation);
  EXPECT_EQ(wish.source, "classes.isolation");
  EXPECT_EQ(wish.note,
            "annotation irq-load-balancing.crio.io, cpu-quota.crio.io ignored: namespace telco is "
            "not in classes.AllowedNamespaces.isolation");
}

constexpr const char* kOfPod = "irq-affinity.resource-policy.nri.io/pod";

StatusOr<InterruptWish> ReadWish(std::string_view text) {
  InterruptWish wish;
  RESMGR_RETURN_IF_ERROR(ReadInterruptWish({{kOfPod, std::string(text)}}, "main", wish));
  return wish;
}

TEST(InterruptWishTest, ReadsTheListsAndTheMode) {
  const InterruptWish both = ReadWish("claim: ['*eth0*', 24]\nmask: ['*']\n").value();
  EXPECT_EQ(both, (InterruptWish{.claim = {"*eth0*", "24"}, .mask = {"*"}}));
  EXPECT_EQ(both.ToString(), "claim *eth0*, 24; mask *");
  EXPECT_FALSE(ReadWish("{claim: ['*'], mode: mask-first}")->mask_wins);
  EXPECT_TRUE(ReadWish("{claim: ['*'], mode: claim-first}")->mask_wins);
  EXPECT_EQ(ReadWish("{mask: nvme*}")->ToString(), "mask nvme*");
  EXPECT_FALSE(ReadWish("{}")->any());
  EXPECT_FALSE(ReadWish("")->any());
}

TEST(InterruptWishTest, TheNarrowestAnnotationCounts) {
  InterruptWish wish;
  ASSERT_TRUE(
      ReadInterruptWish({{kOfPod, "mask: ['*']"},
                         {"irq-affinity.resource-policy.nri.io/container.main", "claim: [24]"},
                         {"irq-affinity.resource-policy.nri.io/container.other", "mode: x"}},
                        "main", wish)
          .ok());
  EXPECT_EQ(wish, InterruptWish{.claim = {"24"}});
}

TEST(InterruptWishTest, MistakesAreNamed) {
  const auto error = [](std::string_view text) {
    return std::string(Message(ReadWish(text).status()));
  };
  EXPECT_THAT(error("{claims: [24]}"), HasSubstr("irq-affinity.claims: unknown key"));
  EXPECT_THAT(error("{mode: first}"), HasSubstr("irq-affinity.mode"));
  EXPECT_THAT(error("{mask: ['eth[']}"), HasSubstr("\"eth[\" has a [ without its ]"));
  EXPECT_THAT(error("[24]"), HasSubstr("irq-affinity"));
  EXPECT_NE(error("claim: [{"), "");
  std::string many = "claim: [a";
  for (int i = 0; i < 64; ++i)
    many += ", a";
  EXPECT_THAT(error(many + "]"), HasSubstr("irq-affinity.claim: has more than 64 globs"));
}

// A kernel with everything, on cgroup v2.
class IsolationNeedsTest : public testing::Test {
 protected:
  IsolationNeedsTest() {
    files_.tree = {{"sys/devices/system/cpu/online", "2-7\n"},
                   {"proc/irq/default_smp_affinity", "ff\n"},
                   {"sys/devices/virtual/workqueue/cpumask", "ff\n"},
                   {"sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "0\n"},
                   {"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"},
                   {"sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"},
                   {"proc/sys/kernel/osrelease", "6.7.0\n"}};
  }
  // "": nothing is lacking.
  std::string Lacks(const std::string& kind) {
    const AbsentKinds absent = FindAbsentIsolation(files_);
    const auto found = absent.find(kind);
    return found == absent.end() ? "" : found->second.reason;
  }

  test::FakeHostFiles files_;
};

TEST_F(IsolationNeedsTest, NothingIsLackingWhereEverythingIs) {
  EXPECT_TRUE(FindAbsentIsolation(files_).empty());
}

TEST_F(IsolationNeedsTest, PartitionsNeedAKernelAndAController) {
  auto& release = files_.tree["proc/sys/kernel/osrelease"];
  release = "6.6.12-generic\n";
  EXPECT_THAT(Lacks("partition"), HasSubstr("a partition needs Linux 6.7"));
  release = "5.15\n";
  EXPECT_THAT(Lacks("partition"), HasSubstr("a partition needs Linux 6.7"));
  files_.tree["sys/fs/cgroup/kubepods.slice/cpuset.cpus.partition"] = "member\n";
  EXPECT_THAT(Lacks("partition"), HasSubstr("a partition needs Linux 6.7"));
  files_.tree["sys/fs/cgroup/kubepods.slice/cpuset.cpus.partition"] = "root\n";
  EXPECT_EQ(Lacks("partition"), "") << "one below it needs nothing else";
  files_.tree["sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  EXPECT_EQ(Lacks("partition"), "sys/fs/cgroup/cgroup.controllers has no cpuset");
}

TEST_F(IsolationNeedsTest, QuotasNeedTheControllerOfEitherVersion) {
  files_.tree["sys/fs/cgroup/cgroup.controllers"] = "cpuset memory\n";
  EXPECT_EQ(Lacks("quota"), "sys/fs/cgroup/cgroup.controllers has no cpu");
  files_.tree.erase("sys/fs/cgroup/cgroup.controllers");
  EXPECT_EQ(Lacks("quota"), "there is no sys/fs/cgroup/cpu");
  files_.tree["sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1\n";
  EXPECT_EQ(Lacks("quota"), "");
}

TEST_F(IsolationNeedsTest, AMachineHasTheGovernorsThatItsKernelLists) {
  files_.tree["sys/devices/system/cpu/cpu2/cpufreq/scaling_available_governors"] =
      "performance powersave \n";
  const AbsentKinds absent = FindAbsentIsolation(files_);
  ASSERT_TRUE(absent.contains("clock"));
  EXPECT_THAT(absent.find("clock")->second.but, ElementsAre("performance", "powersave"));
}

TEST_F(IsolationNeedsTest, AFileThatCannotBeReadIsNotLacking) {
  files_.unreadable.insert("proc/irq/default_smp_affinity");
  EXPECT_EQ(Lacks("interrupts"), "");
}

}  // namespace
}  // namespace resmgr
