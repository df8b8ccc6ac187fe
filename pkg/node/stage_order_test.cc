// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/config.h"
#include "pkg/cpufile/cpu_files.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/node/relay_door.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using testing::ElementsAreArray;

// The parts of a daemon that put stages into its pipeline, with a runtime that is not there.
class StageOrderTest : public testing::TestWithParam<bool> {
 protected:
  StageOrderTest() {
    RelayDoorOptions options{.relay_socket = dir_.File("relay.sock"),
                             .runtime_socket = dir_.File("runtime.sock"),
                             .stages = {&own_}};
    if (GetParam()) options.nri_host.emplace().host.socket = dir_.File("nri.sock");
    auto door = RelayDoorFactory(std::move(options))
                    .create({.loop = loop_, .flushes = flushes_, .pipeline = pipeline_});
    door_ = *std::move(door);
    cpu_files_.emplace(
        CpuFiles::Options{.loop = loop_, .pipeline = pipeline_, .directory = dir_.File("cpus")});
    door_->Start(*dumper_);
  }
  ~StageOrderTest() override { door_->Stop(); }

  void Configure(bool hooks, bool files) {
    Config config;
    if (hooks) config.hooks.directory = dir_.path();
    if (files) config.cpu_files.containers = CpuFilesConfig::Containers::kAll;
    door_->Configure(config);
    cpu_files_->Configure(config.cpu_files);
  }
  static std::vector<std::string> Expected(bool hooks, bool files) {
    std::vector<std::string> names = {"own"};
    if (hooks) names.emplace_back("hooks");
    if (GetParam()) names.emplace_back("nri");
    if (files) names.emplace_back("cpu-files");
    return names;
  }

  TempDir dir_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_};
  std::unique_ptr<dump::Dumper> dumper_ = *dump::Dumper::Create({}, [](const auto&...) {});
  test::FunctionStage own_{{.name = "own"},
                           [](auto& call, Request&, const Adjustment&) { call.Pass(); }};
  std::unique_ptr<FrontDoor> door_;
  std::optional<CpuFiles> cpu_files_;
};

TEST_P(StageOrderTest, HookServersThatAreSwitchedOnLiveStandWhereTheyStandAtTheStart) {
  Configure(false, true);
  Configure(true, true);
  EXPECT_THAT(pipeline_.StageNames(), ElementsAreArray(Expected(true, true)));
}

TEST_P(StageOrderTest, LiveChangesNeverChangeTheOrder) {
  const uint64_t seed = test::SeedOr(37);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    const bool hooks = random() % 2 == 0;
    const bool files = random() % 2 == 0;
    Configure(hooks, files);
    ASSERT_THAT(pipeline_.StageNames(), ElementsAreArray(Expected(hooks, files))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(NriHost, StageOrderTest, testing::Bool());

}  // namespace
}  // namespace resmgr
