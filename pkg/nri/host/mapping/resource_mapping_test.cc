// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/resource_mapping.h"

#include <ctime>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/mapping/change_owners.h"
#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr RuntimeTraits kCgroupV1{.cgroup_v2 = false};

constexpr const char* kAll = R"(
  cpu { shares { value: 512 } quota { value: -1 } period { value: 100000 } cpus: "0-1" mems: "1" }
  memory { limit { value: 100 } swap { value: 200 } reservation { value: 50 } }
  hugepage_limits { page_size: "2MB" limit: 4096 }
  unified { key: "memory.high" value: "9" }
  pids { limit: 7 })";

TEST(ResourceMappingTest, ChangesWhatTheCriHas) {
  const ResourceChange change = ToResourceChange(Make<api::LinuxResources>(kAll));

  const LinuxResources expected{.cpu_period = 100'000,
                                .cpu_quota = -1,
                                .cpu_shares = 512,
                                .memory_limit = 100,
                                .oom_score_adj = {},
                                .cpuset_cpus = "0-1",
                                .cpuset_mems = "1",
                                .hugepage_limits = {{"2MB", 4096}}};
  EXPECT_EQ(change.resources, expected);
  EXPECT_EQ(change.memory_swap_limit, 200);
  EXPECT_EQ(change.unified,
            (StringMap{{"memory.high", "9"}, {"memory.low", "50"}, {"pids.max", "7"}}));
  EXPECT_EQ(ToResourceChange(Make<api::LinuxResources>(kAll), kCgroupV1).unified,
            (StringMap{{"memory.high", "9"}}));
}

TEST(ResourceMappingTest, FilesThatAreNamedCount) {
  const auto resources = Make<api::LinuxResources>(R"(
    memory { reservation { value: -1 } } pids { limit: -1 }
    unified { key: "pids.max" value: "5" })");
  EXPECT_EQ(ToResourceChange(resources).unified,
            (StringMap{{"memory.low", "max"}, {"pids.max", "5"}}));
}

TEST(ResourceMappingTest, AFileTakesThePlaceOfItsField) {
  const ResourceChange change = ToResourceChange(Make<api::LinuxResources>(R"(
    cpu { shares { value: 512 } quota { value: 7 } period { value: 8 } }
    memory { limit { value: 100 } swap { value: 200 } }
    unified { key: "cpu.max" value: "5000 10000" }
    unified { key: "cpu.weight" value: "3" }
    unified { key: "memory.max" value: "max" }
    unified { key: "memory.swap.max" value: "0" }
    unified { key: "hugetlb.2MB.max" value: "9" })"));
  const LinuxResources expected{.cpu_period = 10'000,
                                .cpu_quota = 5000,
                                .cpu_shares = {},
                                .memory_limit = {},
                                .oom_score_adj = {},
                                .cpuset_cpus = {},
                                .cpuset_mems = {},
                                .hugepage_limits = {{"2MB", 9}}};
  EXPECT_EQ(change.resources, expected);
  EXPECT_EQ(change.memory_swap_limit, std::nullopt);
  EXPECT_EQ(change.unified,
            (StringMap{{"cpu.weight", "3"}, {"memory.max", "max"}, {"memory.swap.max", "0"}}));
}

// CRI-O refuses a memory limit of -1; at a creation, no limit means the same.
TEST(ResourceMappingTest, ALiftedMemoryLimitIsNoneAtACreationAndCannotBeSaidLater) {
  const auto lifted =
      Make<api::LinuxResources>("memory { limit { value: -1 } swap { value: -1 } }");

  Adjustment creation;
  ASSERT_TRUE(MapResources(lifted, {}, creation).ok());
  ASSERT_NE(creation.wide(), nullptr);
  EXPECT_EQ(creation.wide()->memory_limit, 0);
  EXPECT_EQ(creation.wide()->memory_swap_limit, 0);
  EXPECT_THAT(ShortfallsOf(lifted, {}, false), IsEmpty());

  const ResourceChange change = ToResourceChange(lifted);
  EXPECT_EQ(change.resources, LinuxResources());
  EXPECT_EQ(change.memory_swap_limit, std::nullopt);
  std::vector<int> fields;
  for (const Shortfall& shortfall : ShortfallsOf(lifted, {}, true))
    fields.push_back(shortfall.field);
  EXPECT_THAT(fields, ElementsAre(api::FIELD_MEM_LIMIT, api::FIELD_MEM_SWAP_LIMIT));
}

TEST(ResourceMappingTest, APlacementIsLeftOutInAllItsForms) {
  auto resources = Make<api::LinuxResources>(R"(
    cpu { cpus: "1" mems: "0" shares { value: 2 } }
    unified { key: "cpuset.cpus" value: "8-9" }
    unified { key: "cpuset.cpus.partition" value: "root" }
    unified { key: "memory.high" value: "1" })");
  EXPECT_TRUE(LeaveOutPlacement(resources));
  EXPECT_FALSE(LeaveOutPlacement(resources));
  EXPECT_EQ(resources.cpu().cpus(), "");
  EXPECT_EQ(resources.cpu().shares().value(), 2U);
  EXPECT_EQ(resources.unified_size(), 1);
  auto only_file = Make<api::LinuxResources>("unified { key: 'cpuset.mems' value: '1' }");
  EXPECT_TRUE(LeaveOutPlacement(only_file));
  EXPECT_FALSE(only_file.has_cpu());
}

TEST(ResourceMappingTest, EditsARequest) {
  Adjustment adjustment;
  ASSERT_TRUE(MapResources(Make<api::LinuxResources>(kAll), {}, adjustment).ok());

  EXPECT_EQ(adjustment.values, (ResourceValues{.cpus = CpuSet{0, 1},
                                               .mems = NodeSet{1},
                                               .cpu_shares = 512,
                                               .cpu_quota = -1,
                                               .cpu_period = 100'000}));
  const WideAdjustment& wide = *adjustment.wide();
  EXPECT_EQ(wide.memory_limit, 100);
  EXPECT_EQ(wide.memory_swap_limit, 200);
  EXPECT_EQ(wide.hugepage_limits.Find("2MB")->value, 4096);
  EXPECT_EQ(wide.unified.Find("memory.low")->value, "50");
  EXPECT_EQ(wide.unified.Find("memory.high")->value, "9");
  EXPECT_EQ(wide.unified.Find("pids.max")->value, "7");
}

TEST(ResourceMappingTest, NothingIsNoEdit) {
  Adjustment adjustment;
  ASSERT_TRUE(MapResources(Make<api::LinuxResources>("cpu {} memory {}"), {}, adjustment).ok());
  EXPECT_TRUE(adjustment.empty());
}

TEST(ResourceMappingTest, RefusesWhatCannotBeRead) {
  for (const auto& [text, what] : {
           std::pair("cpu { cpus: '0-x' }", "cpus"),
           std::pair("cpu { mems: ',' }", "mems"),
           std::pair("cpu { shares { value: 9223372036854775808 } }", "CPU shares"),
           std::pair("cpu { period { value: 18446744073709551615 } }", "CPU period"),
       }) {
    Adjustment adjustment;
    const Status status = MapResources(Make<api::LinuxResources>(text), {}, adjustment);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(what));
  }
}

TEST(ResourceMappingTest, TellsWhatIsLeftOut) {
  const auto resources = Make<api::LinuxResources>(R"(
    memory { reservation {} kernel {} kernel_tcp {} swappiness {} disable_oom_killer {}
             use_hierarchy {} }
    cpu { realtime_runtime {} realtime_period {} }
    pids { limit: 1 } blockio_class {} rdt_class {} devices { allow: true })");
  const auto fields = [&](const RuntimeTraits& traits, bool update) {
    std::vector<int> numbers;
    for (const Shortfall& shortfall : ShortfallsOf(resources, traits, update))
      numbers.push_back(shortfall.field);
    return numbers;
  };

  EXPECT_THAT(fields({}, false), ElementsAre(11, 12, 13, 14, 15, 19, 20, 0));
  EXPECT_THAT(fields(kCgroupV1, false), ElementsAre(9, 11, 12, 13, 14, 15, 19, 20, 23, 0));
  EXPECT_THAT(fields({}, true), ElementsAre(11, 12, 13, 14, 15, 19, 20, 25, 26, 0));
  EXPECT_THAT(ShortfallsOf(Make<api::LinuxResources>(kAll), {}, true), IsEmpty());
}

TEST(RuntimeTraitsTest, FollowsTheRelease) {
  using Cdi = RuntimeTraits::Cdi;
  const auto of = [](const char* name, const char* version) {
    const RuntimeTraits traits = TraitsOf(name, version, true);
    return std::pair(traits.cdi, traits.recursive_read_only);
  };
  EXPECT_THAT(of("containerd", "1.6.20~ds1"), Pair(Cdi::kNone, false));
  EXPECT_THAT(of("containerd", "v1.7.24"), Pair(Cdi::kField, false));
  EXPECT_THAT(of("containerd", "v2.0.0-rc.1"), Pair(Cdi::kField, true));
  EXPECT_THAT(of("cri-o", "1.22.1"), Pair(Cdi::kNone, false));
  EXPECT_THAT(of("cri-o", "1.26.0"), Pair(Cdi::kAnnotation, false));
  EXPECT_THAT(of("cri-o", "1.29.1"), Pair(Cdi::kField, false));
  EXPECT_THAT(of("cri-o", "1.30.0"), Pair(Cdi::kField, true));
  EXPECT_THAT(of("containerd", "main"), Pair(Cdi::kField, true));
  EXPECT_THAT(of("other", "0.1.0"), Pair(Cdi::kField, true));
  using Seccomp = RuntimeTraits::Seccomp;
  EXPECT_EQ(TraitsOf("docker", "20.10.24+dfsg1", false).seccomp, Seccomp::kPlainText);
  EXPECT_EQ(TraitsOf("docker", "23.0.1", false).seccomp, Seccomp::kText);
  EXPECT_EQ(TraitsOf("docker", "dev", false).seccomp, Seccomp::kText);
  EXPECT_EQ(TraitsOf("containerd", "1.6.20", true).seccomp, Seccomp::kFile);
}

constexpr const char* kManyFields = R"(adjust {
  env { key: "A" } mounts { destination: "/data" } args: "/bin/x"
  CDI_devices { name: "vendor.com/gpu=1" } rlimits { type: "RLIMIT_NOFILE" }
  hooks { prestart { path: "/bin/h" } } annotations { key: "note" value: "x" }
  linux {
    devices { path: "/dev/x" } oom_score_adj { value: 5 }
    seccomp_policy { default_action: "SCMP_ACT_ALLOW" }
    resources {
      cpu { shares { value: 2 } quota { value: 2 } period { value: 2 } cpus: "0" mems: "0" }
      memory { limit { value: 2 } swap { value: 2 } reservation { value: 2 } }
      pids { limit: 2 } hugepage_limits { page_size: "2MB" }
      blockio_class { value: "slow" } rdt_class { value: "gold" }
      unified { key: "memory.high" value: "1" }
    }
  } })";

TEST(PluginBehindTest, TellsWhichPluginMadeEachChange) {
  const auto second = Make<api::CreateContainerResponse>(
      "adjust { env { key: 'B' } hooks { poststop { path: '/bin/h' } } }");

  AdjustmentMerge merge(Given({}));
  ASSERT_TRUE(merge.Add("10-a", Make<api::CreateContainerResponse>(kManyFields)).ok());
  ASSERT_TRUE(merge.Add("20-b", second).ok());
  const std::vector<OwnedField> owned = merge.owned("");
  for (const FieldChange& change : std::vector<FieldChange>{
           {.field = Field::kCpusetCpus},
           {.field = Field::kCpusetMems},
           {.field = Field::kCpuShares},
           {.field = Field::kCpuQuota},
           {.field = Field::kCpuPeriod},
           {.field = Field::kMemoryLimit},
           {.field = Field::kMemorySwapLimit},
           {.field = Field::kOomScoreAdj},
           {.field = Field::kHugepageLimits, .key = "2MB"},
           {.field = Field::kUnified, .key = "memory.high"},
           {.field = Field::kUnified, .key = "memory.low"},
           {.field = Field::kUnified, .key = "pids.max"},
           {.field = Field::kBlockioClass},
           {.field = Field::kRdtClass},
           {.field = Field::kEnvironment, .key = "A"},
           {.field = Field::kArgs},
           {.field = Field::kMounts, .key = "/data"},
           {.field = Field::kDevices, .key = "/dev/x"},
           {.field = Field::kCdiDevices, .key = "vendor.com/gpu=1"},
           {.field = Field::kAnnotations, .key = "note"},
           {.field = Field::kResourceLimits, .key = "RLIMIT_NOFILE"},
           {.field = Field::kSeccompProfile},
       }) {
    EXPECT_EQ(PluginBehind(owned, change), "10-a") << ToString(change.field) << " " << change.key;
  }
  EXPECT_EQ(PluginBehind(owned, {.field = Field::kEnvironment, .key = "B"}), "20-b");
  EXPECT_EQ(PluginBehind(owned, {.field = Field::kHooks, .key = "/bin/h"}), "10-a,20-b");
}

TEST(PluginBehindTest, WhoSetsAFileOwnsTheFieldThatIsMadeOfIt) {
  AdjustmentMerge merge(Given({}));
  ASSERT_TRUE(merge
                  .Add("10-a", Make<api::CreateContainerResponse>(
                                   "adjust { linux { resources { cpu { quota { value: 7 } } } } }"))
                  .ok());
  ASSERT_TRUE(merge
                  .Add("20-b", Make<api::CreateContainerResponse>(R"(
                         adjust { linux { resources {
                           unified { key: "cpu.max" value: "5000 10000" }
                           unified { key: "memory.max" value: "4096" }
                           unified { key: "hugetlb.2MB.max" value: "1" } } } })"))
                  .ok());
  const std::vector<OwnedField> owned = merge.owned("");
  for (const FieldChange& change : std::vector<FieldChange>{
           {.field = Field::kCpuQuota},
           {.field = Field::kCpuPeriod},
           {.field = Field::kMemoryLimit},
           {.field = Field::kHugepageLimits, .key = "2MB"},
       })
    EXPECT_EQ(PluginBehind(owned, change), "20-b") << ToString(change.field);
}

// Each change of a creation is looked up, on the event loop.
TEST(PluginBehindTest, ManyVariablesOfAPluginAreFoundQuickly) {
  constexpr int kVariables = 20'000;
  api::CreateContainerResponse reply;
  for (int i = 0; i < kVariables; ++i)
    reply.mutable_adjust()->add_env()->set_key(std::to_string(i));
  AdjustmentMerge merge(Given({}));
  ASSERT_TRUE(merge.Add("10-a", reply).ok());
  const std::vector<OwnedField> owned = merge.owned("");
  const std::clock_t before = std::clock();
  for (int i = 0; i < kVariables; ++i)
    ASSERT_EQ(PluginBehind(owned, {.field = Field::kEnvironment, .key = std::to_string(i)}),
              "10-a");
  EXPECT_LT(std::clock() - before, 3 * CLOCKS_PER_SEC);
}

TEST(PluginBehindTest, TellsNoPluginOfWhatNoneHasSet) {
  AdjustmentMerge merge(Given({}));
  api::CreateContainerResponse reply;
  (*reply.mutable_adjust()->mutable_linux()->mutable_resources()->mutable_unified())["memory.low"] =
      "1";
  ASSERT_TRUE(merge.Add("10-a", reply).ok());
  const std::vector<OwnedField> owned = merge.owned("");
  EXPECT_EQ(PluginBehind(owned, {.field = Field::kUnified, .key = "memory.low"}), "10-a");
  EXPECT_EQ(PluginBehind(owned, {.field = Field::kUnified, .key = "pids.max"}), "");
  EXPECT_EQ(PluginBehind(owned, {.field = Field::kEnvironment, .key = "A"}), "");
  EXPECT_EQ(PluginBehind(owned, {.field = Field::kLabels, .key = "x"}), "");
  EXPECT_EQ(PluginBehind({}, {.field = Field::kArgs}), "");
}

}  // namespace
}  // namespace resmgr::nri
