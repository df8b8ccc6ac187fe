// SPDX-License-Identifier: Apache-2.0
// A change to the null policy takes the brain away, and no container stays bound all the same.
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control_fixture.h"

namespace resmgr::test {
namespace {

constexpr char kPinning[] = "Active: static\nReservedResources: {CPU: cpuset:0}\n";
constexpr char kNull[] = "Active: null";

class LettingGoByNullTest : public ControlTest {
 protected:
  LettingGoByNullTest() {
    StartRuntime();
    StartDaemon(Flags({}));
    EXPECT_EQ(SetConfig({{"policy", kPinning}}), "");
  }
  bool RunsEverywhere(const std::string& container) {
    return Eventually([&] { return CpusAtRuntime(container).size() == kCpus; });
  }
};

TEST_F(LettingGoByNullTest, ContainerBeingCreatedDuringTheChange) {
  runtime_.Script("CreateContainer", {.hold = true});
  std::future<Running> run = std::async(std::launch::async, [this] {
    CriClient client = Relayed();
    return Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  });
  ASSERT_TRUE(runtime_.WaitForHeld("CreateContainer", 1));
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  runtime_.Release("CreateContainer");
  EXPECT_TRUE(RunsEverywhere(run.get().container));
}

TEST_F(LettingGoByNullTest, WhenTheRuntimeComesBack) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  runtime_.Stop();
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  StartRuntime();
  EXPECT_TRUE(RunsEverywhere(running.container));
}

TEST_F(LettingGoByNullTest, AfterARestart) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  ASSERT_EQ(CpusAtRuntime(running.container).size(), 2);
  ASSERT_THAT(daemon_->Terminate(), IsOk());
  StartDaemon(Flags({"-policy", "null"}));
  EXPECT_TRUE(RunsEverywhere(running.container));
}

// The next policy takes over what null had not let go yet.
TEST_F(LettingGoByNullTest, ThereAndBackWithoutARuntime) {
  CriClient client = Relayed();
  const Running running = Run(client, MakeGuaranteedPod("g"), MakeGuaranteedContainer("main", 2));
  const CpuSet before = CpusAtRuntime(running.container);
  runtime_.Stop();
  ASSERT_EQ(SetConfig({{"policy", kNull}}), "");
  ASSERT_EQ(SetConfig({{"policy", kPinning}}), "");
  StartRuntime();
  ASSERT_TRUE(Eventually([&] { return Ctl({"containers", "-o", "json"}).json().size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return CpusAtRuntime(running.container).size() == 2; }));
}

}  // namespace
}  // namespace resmgr::test
