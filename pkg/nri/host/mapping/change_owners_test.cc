// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/change_owners.h"

#include <vector>

#include <gtest/gtest.h>

#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/testing/given_container.h"

namespace resmgr::nri {
namespace {

TEST(ChangeOwnersTest, TellsWhichPluginMadeEachChange) {
  api::CreateContainerResponse first;
  api::CreateContainerResponse second;
  api::ContainerAdjustment& adjust = *first.mutable_adjust();
  adjust.add_env()->set_key("A");
  adjust.add_mounts()->set_destination("/data");
  adjust.add_args("/bin/x");
  adjust.add_cdi_devices()->set_name("vendor.com/gpu=1");
  adjust.add_rlimits()->set_type("RLIMIT_NOFILE");
  adjust.mutable_hooks()->add_prestart()->set_path("/bin/h");
  (*adjust.mutable_annotations())["note"] = "x";
  api::LinuxContainerAdjustment& linux = *adjust.mutable_linux();
  linux.add_devices()->set_path("/dev/x");
  linux.mutable_oom_score_adj()->set_value(5);
  linux.mutable_seccomp_policy()->set_default_action("SCMP_ACT_ALLOW");
  api::LinuxResources& resources = *linux.mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(2);
  resources.mutable_cpu()->mutable_quota()->set_value(2);
  resources.mutable_cpu()->mutable_period()->set_value(2);
  resources.mutable_cpu()->set_cpus("0");
  resources.mutable_cpu()->set_mems("0");
  resources.mutable_memory()->mutable_limit()->set_value(2);
  resources.mutable_memory()->mutable_swap()->set_value(2);
  resources.mutable_memory()->mutable_reservation()->set_value(2);
  resources.mutable_pids()->set_limit(2);
  resources.add_hugepage_limits()->set_page_size("2MB");
  resources.mutable_blockio_class()->set_value("slow");
  resources.mutable_rdt_class()->set_value("gold");
  (*resources.mutable_unified())["memory.high"] = "1";
  second.mutable_adjust()->add_env()->set_key("B");
  second.mutable_adjust()->mutable_hooks()->add_poststop()->set_path("/bin/h");

  AdjustmentMerge merge(Given({}));
  ASSERT_TRUE(merge.Add("10-a", first).ok());
  ASSERT_TRUE(merge.Add("20-b", second).ok());
  const std::vector<OwnedField> owned = merge.owned("");
  const ChangeOwners owners(owned);
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
    EXPECT_EQ(owners.PluginOf(change), "10-a") << ToString(change.field) << " " << change.key;
  }
  EXPECT_EQ(owners.PluginOf({.field = Field::kEnvironment, .key = "B"}), "20-b");
  EXPECT_EQ(owners.PluginOf({.field = Field::kHooks, .key = "/bin/h"}), "10-a,20-b");
}

TEST(ChangeOwnersTest, WhoSetsAFileOwnsTheFieldThatIsMadeOfIt) {
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
  const ChangeOwners owners(owned);
  for (const FieldChange& change : std::vector<FieldChange>{
           {.field = Field::kCpuQuota},
           {.field = Field::kCpuPeriod},
           {.field = Field::kMemoryLimit},
           {.field = Field::kHugepageLimits, .key = "2MB"},
       })
    EXPECT_EQ(owners.PluginOf(change), "20-b") << ToString(change.field);
}

TEST(ChangeOwnersTest, TellsNoPluginOfWhatNoneHasSet) {
  AdjustmentMerge merge(Given({}));
  api::CreateContainerResponse reply;
  (*reply.mutable_adjust()->mutable_linux()->mutable_resources()->mutable_unified())["memory.low"] =
      "1";
  ASSERT_TRUE(merge.Add("10-a", reply).ok());
  const std::vector<OwnedField> owned = merge.owned("");
  const ChangeOwners owners(owned);
  EXPECT_EQ(owners.PluginOf({.field = Field::kUnified, .key = "memory.low"}), "10-a");
  EXPECT_EQ(owners.PluginOf({.field = Field::kUnified, .key = "pids.max"}), "");
  EXPECT_EQ(owners.PluginOf({.field = Field::kEnvironment, .key = "A"}), "");
  EXPECT_EQ(owners.PluginOf({.field = Field::kLabels, .key = "x"}), "");
  EXPECT_EQ(ChangeOwners().PluginOf({.field = Field::kArgs}), "");
}

}  // namespace
}  // namespace resmgr::nri
