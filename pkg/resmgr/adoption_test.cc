// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/adoption.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class AdoptionTest : public ::testing::Test {
 protected:
  AdoptionTest() {
    Pod pod;
    pod.id = PodSandboxId("pod");
    inventory_.pods.push_back(pod);
  }

  void Report(const std::string& name, ContainerState state, const std::string& cpus) {
    RuntimeContainer container;
    container.id = ContainerId(name);
    container.pod_id = PodSandboxId("pod");
    container.name = name;
    container.state = state;
    container.resources.cpuset_cpus = cpus;
    inventory_.containers.push_back(container);
  }
  // The CPUs that count as exclusive, by name.
  std::map<std::string, std::string> Exclusive() {
    const Adoption adoption =
        Adopt(store_, inventory_, {}, store_.clock(), Bytes{0}, state_writer_);
    std::map<std::string, std::string> exclusive;
    for (const auto& [key, resources] : adoption.in_force)
      exclusive[store_.Find(key)->container.name] = resources.exclusive.ToString();
    return exclusive;
  }

  // Saves the container as one that shares although it requests `cpus` CPUs.
  void SaveSharing(const std::string& name, int cpus, const CpuSet& on = {}) {
    Container container;
    if (!on.empty()) container.placement.cpus = on;
    container.requirements.cpu_request = MilliCpu{int64_t{1000} * cpus};
    container.placement.pool = "shared";
    state_.Put(ContainerId(name), container, QosClass::kBurstable);
  }
  std::string PoolAfterAdoption(const std::string& name) {
    Adopt(store_, inventory_, {}, store_.clock(), Bytes{0}, state_writer_);
    return store_.FindById(ContainerId(name))->container.placement.pool;
  }

  const TempDir dir_;
  EventLoop loop_;
  ContainerStore store_;
  StateStore state_{RealFileSystem(), dir_.path(), "machine", [](std::string_view) {}};
  StateWriter state_writer_{loop_, &state_, store_};
  RuntimeInventory inventory_;
};

TEST_F(AdoptionTest, CpusOfOneRunningContainerCountAsExclusive) {
  Report("own", ContainerState::kRunning, "1-2");
  Report("mixed", ContainerState::kRunning, "0,3-4");
  Report("shared", ContainerState::kRunning, "0");
  Report("created", ContainerState::kCreated, "0-7");
  EXPECT_THAT(Exclusive(), UnorderedElementsAre(Pair("own", "1-2"), Pair("mixed", "3-4"),
                                                Pair("shared", ""), Pair("created", "5-7")));
}

TEST_F(AdoptionTest, WithoutACpusetNothingIsExclusive) {
  Report("free", ContainerState::kRunning, "");
  EXPECT_THAT(Exclusive(), UnorderedElementsAre(Pair("free", IsEmpty())));
}

// The move to CPUs of its own had reached the runtime, but not the disk.
TEST_F(AdoptionTest, APlaceOfJustTheRightSizeIsNewerThanTheState) {
  SaveSharing("app", 2);
  Report("app", ContainerState::kRunning, "1-2");
  Report("other", ContainerState::kRunning, "0,3");
  EXPECT_EQ(PoolAfterAdoption("app"), "");
}

TEST_F(AdoptionTest, APlaceThatHasTheRightSizeByChanceIsNot) {
  SaveSharing("app", 2);
  Report("app", ContainerState::kRunning, "1-2");
  Report("other", ContainerState::kCreated, "2-3");
  EXPECT_EQ(PoolAfterAdoption("app"), "shared");
}

TEST_F(AdoptionTest, TheStateTellsAPlaceThatHasTheRightSizeByChance) {
  SaveSharing("app", 2, {1, 2});
  SaveSharing("moved", 2, {1, 2});
  Report("app", ContainerState::kRunning, "1-2");
  Report("moved", ContainerState::kRunning, "4-5");
  EXPECT_EQ(PoolAfterAdoption("app"), "shared");
  EXPECT_EQ(PoolAfterAdoption("moved"), "");
}

// Two containers that are reported on the same CPUs share them: numbers that plugins set for one do
// not count as an update, although an update of the other was under way.
TEST_F(AdoptionTest, AnUpdateUnderWayOfAnotherDoesNotMakePluginsNumbersAnUpdate) {
  inventory_.pods.front().qos = QosClass::kBurstable;
  state_.PutNote(StateStore::PodNote::kOthers, PodSandboxId("node"), "1");
  Container container;
  container.requested.cpu_shares = 512;
  container.requirements.cpu_request = MilliCpu{500};
  container.placement.pool = "shared";
  state_.Put(ContainerId("app"), container, QosClass::kBurstable);
  Report("app", ContainerState::kRunning, "1-2");
  inventory_.containers.back().resources.cpu_shares = 2048;
  SaveSharing("other", 1);
  Report("other", ContainerState::kRunning, "1-2");
  state_.open_calls().Begin(OpenCalls::Kind::kUpdate, ContainerId("other"));
  Adopt(store_, inventory_, {}, store_.clock(), Bytes{0}, state_writer_);
  const Container& app = store_.FindById(ContainerId("app"))->container;
  EXPECT_EQ(app.requirements.cpu_request, MilliCpu{500});
  EXPECT_EQ(app.set_later.cpu_shares, 2048);
}

TEST_F(AdoptionTest, ExitedContainersAreNoUsersOfCpus) {
  SaveSharing("app", 2);
  Report("app", ContainerState::kRunning, "1-2");
  Report("other", ContainerState::kExited, "1-2");
  EXPECT_EQ(PoolAfterAdoption("app"), "");
}

}  // namespace
}  // namespace resmgr
