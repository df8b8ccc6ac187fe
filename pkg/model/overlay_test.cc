// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/overlay.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;

struct Shown {
  CreateRequest create;
  ContainerDetails details;
};

Shown With(const Adjustment& so_far) {
  Shown shown;
  shown.create.labels = {{"l", "1"}, {"m", "1"}};
  shown.create.annotations = {{"a", "1"}};
  shown.create.resources.cpu_shares = 1024;
  shown.create.resources.hugepage_limits = {{"1GB", 1}, {"2MB", 2}};
  shown.details.environment = {{"A", "1"}, {"B", "1"}, {"C", "1"}, {"A", "again"}};
  shown.details.command = {"/bin/app"};
  shown.details.args = {"-v"};
  shown.details.mounts = {{.container_path = "/data", .host_path = "/old"}};
  shown.details.unified = {{"memory.high", "1"}};
  shown.details.cdi_devices = {"vendor/a=0"};
  Overlay(so_far, shown.create);
  Overlay(so_far, shown.details);
  return shown;
}

TEST(OverlayTest, NothingChangesNothing) {
  const Shown before = With(Adjustment());
  EXPECT_EQ(before.create.resources.cpu_shares, 1024);
  EXPECT_EQ(before.details.environment.size(), 4U);
}

TEST(OverlayTest, ShowsWhatThePolicyDecided) {
  const Shown shown = With(Adjustment({.cpus = CpuSet{2, 3}, .cpu_quota = -1}));

  EXPECT_EQ(shown.create.resources.cpuset_cpus, "2-3");
  EXPECT_EQ(shown.create.resources.cpu_quota, -1);
  EXPECT_EQ(shown.create.resources.cpu_shares, 1024);
}

TEST(OverlayTest, AFileTakesThePlaceOfTheField) {
  Adjustment so_far;
  so_far.Wide().unified.Set("cpu.weight", "7");
  const Shown shown = With(so_far);
  EXPECT_EQ(shown.create.resources.cpu_shares, std::nullopt);
  EXPECT_EQ(shown.details.unified, (StringMap{{"cpu.weight", "7"}, {"memory.high", "1"}}));
}

TEST(OverlayTest, ShowsThatAListIsCleared) {
  CreateRequest create;
  create.resources.cpuset_cpus = "1";
  create.resources.cpuset_mems = "0";
  Adjustment so_far({.mems = NodeSet{1}});
  so_far.Wide().clear_cpus = true;

  Overlay(so_far, create);

  EXPECT_EQ(create.resources.cpuset_cpus, std::nullopt);
  EXPECT_EQ(create.resources.cpuset_mems, "1");
}

TEST(OverlayTest, DetailsThatAreSharedAreCopiedWhereSomethingChanges) {
  ContainerDetails before;
  before.environment = {{"A", "1"}};
  const auto details = std::make_shared<const ContainerDetails>(before);
  EXPECT_EQ(Overlaid(Adjustment({.cpu_shares = 2}), details), details);

  Adjustment so_far;
  so_far.Wide().environment.Set("A", "2");
  const auto changed = Overlaid(so_far, details);
  EXPECT_EQ(changed->environment[0].value, "2");
  EXPECT_EQ(details->environment[0].value, "1");
}

TEST(OverlayTest, EditsEntriesInTheirPlace) {
  Adjustment so_far;
  WideAdjustment& wide = so_far.Wide();
  wide.environment.Set("A", "2");
  wide.environment.Remove("B");
  wide.environment.Set("D", "4");
  wide.mounts.Set("/data", {.container_path = "/data", .host_path = "/new"});
  wide.labels.Remove("l");
  wide.annotations.Set("b", "2");
  wide.hugepage_limits.Remove("1GB");
  wide.hugepage_limits.Set("2MB", 4);
  wide.unified.Set("memory.low", "3");

  const Shown shown = With(so_far);

  EXPECT_THAT(shown.details.environment,
              ElementsAre(EnvironmentVariable{"A", "2"}, EnvironmentVariable{"C", "1"},
                          EnvironmentVariable{"D", "4"}));
  EXPECT_THAT(shown.details.mounts,
              ElementsAre(Mount{.container_path = "/data", .host_path = "/new"}));
  EXPECT_EQ(shown.create.labels, (StringMap{{"m", "1"}}));
  EXPECT_EQ(shown.create.annotations, (StringMap{{"a", "1"}, {"b", "2"}}));
  EXPECT_THAT(shown.create.resources.hugepage_limits, ElementsAre(testing::Pair("2MB", 4)));
  EXPECT_EQ(shown.details.unified, (StringMap{{"memory.high", "1"}, {"memory.low", "3"}}));
}

TEST(OverlayTest, TakesTheRest) {
  Adjustment so_far;
  WideAdjustment& wide = so_far.Wide();
  wide.memory_limit = 10;
  wide.memory_swap_limit = 20;
  wide.oom_score_adj = -1;
  wide.args = {"wrapper"};
  wide.devices.Set("/dev/x", {.container_path = "/dev/x"});
  wide.cdi_devices = {"vendor/b=0"};
  wide.cgroup_parent = "/pods";
  wide.resource_limits.Set("RLIMIT_CORE", {.type = "RLIMIT_CORE", .hard = 1});
  wide.hooks = {{.path = "/bin/hook"}};
  wide.seccomp_profile = "/profile.json";

  const Shown shown = With(so_far);

  EXPECT_EQ(shown.create.resources.memory_limit, 10);
  EXPECT_EQ(shown.create.resources.oom_score_adj, -1);
  const ContainerDetails& details = shown.details;
  EXPECT_EQ(details.memory_swap_limit, 20);
  EXPECT_THAT(details.command, ElementsAre("wrapper"));
  EXPECT_TRUE(details.args.empty());
  EXPECT_THAT(details.devices, ElementsAre(Device{.container_path = "/dev/x"}));
  EXPECT_THAT(details.cdi_devices, ElementsAre("vendor/a=0", "vendor/b=0"));
  EXPECT_EQ(details.cgroup_parent, "/pods");
  EXPECT_THAT(details.resource_limits,
              ElementsAre(ResourceLimit{.type = "RLIMIT_CORE", .hard = 1}));
  EXPECT_THAT(details.hooks, ElementsAre(OciHook{.path = "/bin/hook"}));
  EXPECT_EQ(details.security.seccomp->path, "/profile.json");
}

TEST(OverlayTest, ASeccompPolicyInTheRequestIsInNoFile) {
  Adjustment so_far;
  so_far.Wide().seccomp_profile = "{}";
  EXPECT_EQ(With(so_far).details.security.seccomp,
            SeccompProfile{.kind = SeccompProfile::Kind::kLocalhost});
}

}  // namespace
}  // namespace resmgr
