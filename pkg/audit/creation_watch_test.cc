// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/creation_watch.h"

#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::TestNode;

// The watch needs the node's loop, and the node the observer.
class Relay final : public Observer {
 public:
  void OnInForce(const Act& act, const Place& place) override {
    if (to != nullptr) to->OnInForce(act, place);
  }
  Observer* to = nullptr;
};

class CreationWatchTest : public testing::Test {
 protected:
  CreationWatchTest() {
    cgroups_.Put("cgroup.controllers", "");
    relay_.to = &watch_;
  }
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.observer = &relay_;
    return options;
  }
  void PutCpus(const ContainerId& id, std::string_view cpus) {
    cgroups_.Put(fmt::format("{}/cpuset.cpus", id.value()), fmt::format("{}\n", cpus));
  }
  // Whether a look ends with a drift; the runtime answers if it is asked.
  bool Drifts() {
    bool over = false;
    const auto time = node_.loop().After(milliseconds(300), [&over] { over = true; });
    node_.RunUntil([&] {
      if (!node_.runtime.lists.empty()) node_.runtime.AnswerList();
      return over;
    });
    return drifted_ > 0;
  }
  ContainerId Run(const std::string& name) { return node_.Run(name, QosClass::kGuaranteed, 2000); }

  TempDir cgroups_;
  Relay relay_;
  int drifted_ = 0;
  TestNode node_{test::S1Ht(), test::FirstFit, Options()};
  CreationWatch watch_{{.loop = node_.loop(),
                        .manager = [this] { return &node_.manager(); },
                        .drifted = [this] { ++drifted_; },
                        .cgroups = CgroupReader(cgroups_.path()),
                        .pause = milliseconds(20)}};
};

TEST_F(CreationWatchTest, AContainerThatIsWhereItWasPutIsNoDrift) {
  const ContainerId id = Run("a");
  PutCpus(id, node_.Placed(id));
  node_.runtime.Find(id)->resources.cpuset_cpus = "6";
  EXPECT_FALSE(Drifts()) << "its cgroup tells, and the runtime is not asked";
}

TEST_F(CreationWatchTest, OtherCpusAtTheRuntimeAreADrift) {
  node_.runtime.Find(Run("a"))->resources.cpuset_cpus = "6";
  EXPECT_TRUE(Drifts());
}

TEST_F(CreationWatchTest, OtherCpusInTheCgroupAreADrift) {
  PutCpus(Run("a"), "6");
  EXPECT_TRUE(Drifts());
}

// The difference stays for the container's life, and an early audit cannot mend it.
TEST_F(CreationWatchTest, WhatACgroupAboveTakesAwayIsLeftToTheAudits) {
  const ContainerId id = Run("a");
  PutCpus(id, node_.Placed(id));
  cgroups_.Put(fmt::format("{}/cpuset.cpus.effective", id.value()), "1\n");
  EXPECT_FALSE(Drifts());
}

TEST_F(CreationWatchTest, ACgroupThatCanHaveNoCpusetIsLeftToTheAudits) {
  cgroups_.Put("cgroup.controllers", "cpuset cpu\n");
  cgroups_.Put("cgroup.subtree_control", "cpu\n");
  std::filesystem::create_directories(std::filesystem::path(cgroups_.path()) / Run("a").value());
  EXPECT_FALSE(Drifts());
}

TEST_F(CreationWatchTest, SeveralAreOneLook) {
  Run("a");
  node_.runtime.Find(Run("b"))->resources.cpuset_cpus = "6";
  EXPECT_TRUE(Drifts());
  EXPECT_EQ(drifted_, 1);
}

TEST_F(CreationWatchTest, WithoutAuditsNothingIsLookedAt) {
  watch_.SetOn(false);
  node_.runtime.Find(Run("a"))->resources.cpuset_cpus = "6";
  EXPECT_FALSE(Drifts());
}

}  // namespace
}  // namespace resmgr
