// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/cpus_watch.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/brain_host.h"
#include "pkg/node/testing/fake_door.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine_source.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CpusWatchTest : public testing::Test {
 protected:
  void StartFirstFit() {
    host_.Start(std::make_unique<test::FirstFitPolicy>(machine_));
    watch_.Follow(host_);
  }
  void ListTheRuntime() { door_.links().back()->Synchronize(); }

  static constexpr milliseconds kPeriod{20};
  static constexpr char kAllFree[] =
      R"({"version":1,"numa":[{"id":0,"allocatable":0,"exclusive":0,"free":0}]})";

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  EventLoop loop_;
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_, nullptr};
  HintFinder hints_{loop_, {}};
  test::FakeDoor door_;
  std::vector<std::string> told_;
  CpusWatch watch_{loop_, machine_, [this](std::string cpus) { told_.push_back(std::move(cpus)); },
                   kPeriod};
  BrainHost host_{{.loop = loop_,
                   .machine = machine_,
                   .door = door_,
                   .pipeline = pipeline_,
                   .hints = hints_,
                   .manager = {.observer = &watch_}}};
};

TEST_F(CpusWatchTest, UnderNullThereIsNothingToShow) {
  host_.Start(nullptr);
  watch_.Follow(host_);
  watch_.NoteConfiguration();
  EXPECT_THAT(told_, ElementsAre(""));
}

// Otherwise a restart would show a full node as an empty one.
TEST_F(CpusWatchTest, NothingIsToldBeforeTheRuntimeIsListed) {
  StartFirstFit();
  watch_.NoteConfiguration();
  RunFor(loop_, 3 * kPeriod);
  EXPECT_THAT(told_, IsEmpty());
  ListTheRuntime();
  RunFor(loop_, 2 * kPeriod);
  EXPECT_THAT(told_, ElementsAre(kAllFree));
}

TEST_F(CpusWatchTest, ManyChangesAreToldOnceAPeriodLater) {
  StartFirstFit();
  ListTheRuntime();
  const Observer::Act act{.policy = host_.manager()->policy(),
                          .snapshot = host_.manager()->snapshot(),
                          .pod = Pod(),
                          .container = Container()};
  for (int i = 0; i < 100; ++i) {
    watch_.OnPlaced(act);
    watch_.OnReleased(act);
  }
  EXPECT_THAT(told_, IsEmpty());
  RunFor(loop_, 3 * kPeriod);
  EXPECT_THAT(told_, SizeIs(1));
}

TEST_F(CpusWatchTest, AnotherConfigurationIsToldAtOnce) {
  StartFirstFit();
  ListTheRuntime();
  watch_.NoteConfiguration();
  EXPECT_THAT(told_, ElementsAre(kAllFree));
  host_.SetPolicy(nullptr, [](const Status&) {});
  RunFor(loop_, milliseconds(1));
  watch_.NoteConfiguration();
  EXPECT_THAT(told_, ElementsAre(kAllFree, ""));
}

}  // namespace
}  // namespace resmgr
