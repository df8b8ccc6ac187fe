// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/usage_methods.h"

#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/admin/node_json.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/topology/machine_source.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using std::chrono::seconds;

TEST(UsageJsonTest, ContainersAreTheContract) {
  const UsageFigures figures{.since = std::chrono::system_clock::time_point(seconds(1)),
                             .containers = {{.subject = {.id = "abc",
                                                         .namespace_name = "ns",
                                                         .pod = "web",
                                                         .container = "main",
                                                         .cpus = {1, 2},
                                                         .pool = "exclusive",
                                                         .granted = 2},
                                             .cpu_used = 1.23456,
                                             .throttled_percent = 12.5,
                                             .cpu_pressure = Pressure{.some10 = 1.5, .some60 = 2.5},
                                             .memory_bytes = 4096,
                                             .memory_by_node = {{0, 4000}, {1, 96}},
                                             .remote_percent = 2.4,
                                             .high_events = 7,
                                             .events = {.high = 9, .oom_kills = 2}},
                                            {.subject = {.id = "def"}}}};
  EXPECT_EQ(ContainersUsageJson(figures, false).dump(),
            R"([{"namespace":"ns","pod":"web","container":"main","id":"abc","cpus":"1-2",)"
            R"("granted":2.0,"cpuUsed":1.235,"throttledPercent":12.5,"cpuPressure10":1.5,)"
            R"("cpuPressure60":2.5,"memoryBytes":4096,"memoryByNode":{"0":4000,"1":96},)"
            R"("remotePercent":2.4,"pool":"exclusive","since":"1970-01-01T00:00:01.000Z"},)"
            R"({"namespace":"","pod":"","container":"","id":"def","cpus":"","granted":0.0,)"
            R"("cpuUsed":null,"throttledPercent":null,"cpuPressure10":null,"cpuPressure60":null,)"
            R"("memoryBytes":null,"memoryByNode":{},"remotePercent":null,"pool":"",)"
            R"("since":"1970-01-01T00:00:01.000Z"}])");
  const nlohmann::ordered_json wide = ContainersUsageJson(figures, true);
  EXPECT_EQ(wide[0]["oomKills"], 2);
  EXPECT_EQ(wide[0]["memoryHighEvents"], 7);
  EXPECT_TRUE(wide[1]["oomKills"].is_null());
  EXPECT_TRUE(wide[1]["memoryHighEvents"].is_null());
}

TEST(UsageJsonTest, Nodes) {
  const auto machine = LoadMachine("synthetic:numa:2 core:2 pu:1");
  const UsageFigures figures{
      .cpus = {{0, {.busy_percent = 50}}, {1, {.busy_percent = 25}}},
      .nodes = {{0, {.total_bytes = 9, .used_bytes = 5, .container_bytes = 4}}}};
  EXPECT_EQ(NodesUsageJson(figures, *machine).dump(),
            R"([{"id":0,"cpus":"0-1","cpuUsed":0.75,"memoryBytes":9,"memoryUsed":5,)"
            R"("containerBytes":4,"otherPagesPercent":null}])");
}

TEST(UsageJsonTest, CpusWithoutAPolicyAndWithoutSamples) {
  const auto machine = LoadMachine("synthetic:core:4 pu:1");
  const UsageFigures figures{.cpus = {{2, {.busy_percent = 99.5}}}};
  EXPECT_EQ(CpusJson({.machine = *machine, .offline = {3}, .figures = &figures}, {2, 3}).dump(),
            R"([{"id":2,"state":"unassigned","containers":[],"busyPercent":99.5},)"
            R"({"id":3,"state":"offline","containers":[],"busyPercent":null}])");
  EXPECT_EQ(CpusJson({.machine = *machine}, {0}).dump(),
            R"([{"id":0,"state":"unassigned","containers":[],"busyPercent":null}])");
  EXPECT_EQ(CpusJson({.machine = *machine, .figures = &figures, .brief = true}, {2}).dump(),
            R"([{"id":2,"state":"unassigned","busyPercent":99.5}])");
}

// Has a zone of isolated CPUs, as static and static-plus do.
class IsolatedZone final : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<Zone> Zones(const Snapshot&) const override {
    return {{.name = "reserved", .shared = {0}},
            {.name = "shared", .shared = {1}},
            {.name = "isolated", .shared = {2}}};
  }
};

// Whether a container carries it or not.
TEST(UsageJsonTest, CpusOfClaimsAreExclusiveAndNameTheirClaim) {
  test::TestNode node(test::S1Ht(), test::FirstFit);
  const StatusOr<ClaimGrant> grant = node.Reserve({.uid = "u-1",
                                                   .namespace_name = "shop",
                                                   .name = "fast",
                                                   .parts = {{.device = "cpu", .cpus = 1}}});
  ASSERT_TRUE(grant.ok()) << grant.status();
  const nlohmann::ordered_json cpus =
      CpusJson({.machine = node.machine(), .manager = &node.manager()}, grant->All());
  ASSERT_EQ(cpus.size(), 1U);
  EXPECT_EQ(cpus[0]["state"], "exclusive");
  EXPECT_EQ(cpus[0]["containers"].dump(), R"(["shop/fast/claim"])");
}

TEST(UsageJsonTest, ManyContainersOfACpuAreAllNamed) {
  constexpr size_t kContainers = 70;
  test::TestNode node(test::S1Ht(), test::FirstFit);
  for (size_t i = 0; i < kContainers; ++i)
    node.Run(fmt::format("pod{}", i), kBurstable, 10);
  const OrderedJson cpus = CpusJson({.machine = node.machine(), .manager = &node.manager()}, {7});
  EXPECT_EQ(cpus[0]["containers"].size(), kContainers);
  EXPECT_FALSE(cpus[0].contains("containersMore"));
}

TEST(UsageJsonTest, ContainersThatAreBoundToNoCpusAreCountedForTheTable) {
  test::TestNode node(test::S1Ht(), [](const Machine& machine) {
    auto policy = test::FirstFit(machine);
    static_cast<test::FirstFitPolicy&>(*policy).left_alone = {"anywhere"};
    return policy;
  });
  const ContainerId anywhere = node.Run("anywhere", kBurstable, 10);
  node.Run("shared", kBurstable, 10);
  CpuMap map{.machine = node.machine(), .offline = {6}, .manager = &node.manager()};
  const std::string contract = CpusJson(map, {6, 7}).dump();
  EXPECT_THAT(contract, testing::Not(testing::HasSubstr("unbound"))) << "a fixed outside contract";
  map.unbound = true;
  const OrderedJson cpus = CpusJson(map, {6, 7});
  EXPECT_FALSE(cpus[0].contains("unbound")) << "it is offline";
  EXPECT_EQ(cpus[1]["unbound"], 1);
  EXPECT_EQ(cpus[1]["containers"].dump(), R"(["ns/shared/shared"])");
  node.Stop(anywhere);
  node.Remove(anywhere);
  EXPECT_FALSE(CpusJson(map, {7})[0].contains("unbound"));
}

TEST(UsageJsonTest, AFreeIsolatedCpuIsNotShared) {
  test::TestNode node(
      test::S1Ht(), [](const Machine& machine) { return std::make_unique<IsolatedZone>(machine); });
  const OrderedJson cpus =
      CpusJson({.machine = node.machine(), .manager = &node.manager()}, {0, 1, 2});
  EXPECT_EQ(cpus[0]["state"], "reserved");
  EXPECT_EQ(cpus[1]["state"], "shared");
  EXPECT_EQ(cpus[2]["state"], "unassigned") << "isolated, where the kernel says so";
  EXPECT_EQ(HeldJson(node.manager())["shared"], "1") << "as `cpus` has it";
}

}  // namespace
}  // namespace resmgr
