// SPDX-License-Identifier: Apache-2.0
// The first start of a daemon on a node whose containers run on all CPUs.
#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::TestNode;
using testing::ElementsAre;

using enum QosClass;

class FirstStartTest : public testing::Test {
 protected:
  // A container that runs on all CPUs, as the runtime started it.
  ContainerId Run(std::string_view name, QosClass qos, int64_t milli_cpu) {
    const CreateRequest request = TestNode::Request(node_.AddPod(name, qos), name, milli_cpu);
    ContainerId id = node_.Hold(request, {});
    runtime().Find(id)->state = ContainerState::kRunning;
    return id;
  }
  bool Settled() {
    return std::ranges::all_of(ids_, [this](const ContainerId& id) {
      const Container* const known = node_.Known(id);
      return known != nullptr && node_.manager().Settled(known->key);
    });
  }
  // No container is on the exclusive CPUs of another one.
  void ExpectNoneMeet() {
    for (const ContainerId& id : ids_) {
      const CpuSet own = *CpuSet::Parse(node_.Exclusive(id));
      for (const ContainerId& other : ids_) {
        if (other == id) continue;
        EXPECT_FALSE(own.Intersects(*CpuSet::Parse(runtime().CpusOf(other))))
            << other.value() << " is where " << id.value() << " should be alone";
      }
    }
  }
  // Answers the updates in rounds until all containers are where they should be. Returns the number
  // of rounds.
  int RoundsUntilSettled() {
    int rounds = 0;
    EXPECT_TRUE(node_.RunUntil([&] {
      rounds += runtime().updates.empty() ? 0 : 1;
      for (size_t left = runtime().updates.size(); left > 0; --left)
        runtime().Answer(0);
      return Settled();
    }));
    return rounds;
  }
  test::FakeRuntimeClient& runtime() { return node_.runtime; }

  TestNode node_{test::Q288(), test::FirstFit};
  std::vector<ContainerId> ids_;
};

// Each container is on CPUs that all others want: none can go first, and one that moves aside lets
// none go.
TEST_F(FirstStartTest, ManyExclusiveContainersAreSortedInAFewRounds) {
  for (int i = 0; i < 100; ++i)
    ids_.push_back(Run(fmt::format("exclusive{}", i), kGuaranteed, 2000));
  for (int i = 0; i < 50; ++i)
    ids_.push_back(Run(fmt::format("shared{}", i), kBurstable, 100));
  node_.Restart();
  EXPECT_LE(RoundsUntilSettled(), 12);
  ExpectNoneMeet();
}

// One container that moves aside lets all others go, so no more than one does.
TEST_F(FirstStartTest, OneThatIsInTheWayOfAllMovesAlone) {
  ids_.push_back(Run("first", kGuaranteed, 2000));
  ids_.push_back(Run("second", kGuaranteed, 2000));
  node_.Restart();
  EXPECT_EQ(RoundsUntilSettled(), 4);
  ExpectNoneMeet();
  EXPECT_THAT(runtime().history,
              ElementsAre("first-2 quota=-1", "second-4 quota=-1", "first-2 cpus=0-2,5-287",
                          "second-4 cpus=3-4", "first-2 cpus=1-2"));
}

}  // namespace
}  // namespace resmgr
