// SPDX-License-Identifier: Apache-2.0
// The cost of containers for the daemon and for its scraper, on which docs/scale.md and the limits
// of charts/cri-resmgr are based.
#include <algorithm>
#include <regex>
#include <string>

#include <fmt/format.h>

#include "test/integration/daemon_fixture.h"
#include "test/support/programs/programs.h"
#include "test/support/scrape/scrape.h"

namespace resmgr::test {
namespace {

constexpr int kFew = 100;
constexpr int kMany = 600;
constexpr int kVariables = 30;  // bytes of the environment
// The limit of docs/scale.md.
constexpr int64_t kMostOfOneKib = 16;
constexpr int64_t kMostKib = int64_t{64} << 10;
constexpr int kMostSeries = 600;

class ContainerCostTest : public DaemonTest {
 protected:
  void SetUp() override {
    StartRuntime();
    StartDaemon(Flags({"-policy", "topology-aware", "-reserved-resources", "CPU=1",
                       "-metrics-address", "127.0.0.1:0"}));
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
  }

  // Runs pods of one container until there are `containers`.
  void RunUntil(int containers) {
    CriClient client = Relayed();
    for (; running_ < containers; ++running_) {
      auto container = MakeBurstableContainer("main", {100});
      for (int i = 0; i < kVariables; ++i) {
        auto* const variable = container.add_envs();
        variable->set_key(fmt::format("VARIABLE_{}", i));
        variable->set_value(std::string(60, 'x'));
      }
      Run(client, MakeBurstablePod(fmt::format("pod-{}", running_)), container);
    }
  }
  std::string Metrics() {
    std::smatch port;
    const std::string log = daemon_->Log();
    if (!std::regex_search(log, port, std::regex("metrics are served on port ([0-9]+)"))) return "";
    return Scrape(std::stoi(port[1]));
  }
  // Whether use was sampled twice, as rates need.
  bool UseIsKnown() { return Metrics().find("cri_resmgr_numa_cpu_used{") != std::string::npos; }
  // Lines of the metrics that are samples.
  int Series() {
    const std::string text = Metrics();
    const std::string samples = std::regex_replace(text, std::regex("#[^\n]*\n"), "");
    const size_t body = samples.find("\r\n\r\n");
    if (body == std::string::npos) return 0;
    return static_cast<int>(std::ranges::count(samples.substr(body + 4), '\n'));
  }

 private:
  int running_ = 0;
};

TEST_F(ContainerCostTest, MemoryOfOneIsBounded) {
  RunUntil(kFew);
  const int64_t few = ProcStatus("VmRSS:");
  RunUntil(kMany);
  const int64_t many = ProcStatus("VmRSS:");
  fmt::print("{} containers: {} KiB, {}: {} KiB, so {:.1f} KiB for each\n", kFew, few, kMany, many,
             static_cast<double>(many - few) / (kMany - kFew));
  EXPECT_GT(few, 0);
  if (SanitizedPrograms()) return;
  EXPECT_LT(many - few, kMostOfOneKib * (kMany - kFew));
  EXPECT_LT(ProcStatus("VmHWM:"), kMostKib);
}

// Prometheus keeps each series of each of thousands of nodes.
TEST_F(ContainerCostTest, SeriesDoNotGrowWithContainers) {
  RunUntil(kFew);
  ASSERT_TRUE(Logged("metrics are served on port"));
  ASSERT_TRUE(Eventually([this] { return UseIsKnown(); })) << Metrics();
  const int few = Series();
  RunUntil(2 * kFew);
  fmt::print("{} series\n", few);
  EXPECT_GT(few, 100);
  EXPECT_LT(few, kMostSeries);
  EXPECT_EQ(Series(), few);
}

}  // namespace
}  // namespace resmgr::test
