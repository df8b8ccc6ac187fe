// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_kinds.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/fake_block_devices.h"
#include "pkg/classes/testing/kind_bench.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kIoMax = "sys/fs/cgroup/c/io.max";
constexpr const char* kIoWeight = "sys/fs/cgroup/c/io.weight";
constexpr const char* kSlow = "7:7 rbps=5000000 wbps=max riops=max wiops=max";

class BlockioKindTest : public testing::Test {
 protected:
  BlockioKindTest() {
    auto devices = std::make_unique<test::FakeBlockDevices>();
    devices_ = devices.get();
    devices_->Add("/dev/loop7", 7, 7);
    bench_.files.tree = {{"sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"},
                         {kIoMax, ""},
                         {kIoWeight, "default 100\n"},
                         {"sys/fs/cgroup/kubepods.slice/io.max", ""},
                         {"sys/fs/cgroup/kubepods.slice/io.weight", "default 100\n"}};
    bench_.config.blockio.classes = {
        {"light", {{.weight = 80}}},
        {"slow", {{.devices = {"/dev/loop*"}, .read_bps = 5'000'000}}}};
    context_.door = [this] { return ways_; };
    kind_ = MakeBlockioKind(context_, std::move(devices));
  }
  ClassReport Run() { return bench_.Run(*kind_); }
  // The files that the runtime sets for a new container with this class.
  std::map<std::string, std::string> AtCreation(const std::string& name, bool unified = true) {
    ChosenClasses chosen;
    chosen.by_name["blockio"] = {.name = name};
    Adjustment adjustment;
    kind_->AtCreation(chosen, bench_.config, unified, adjustment);
    std::map<std::string, std::string> files;
    if (adjustment.wide() == nullptr) return files;
    for (const auto& edit : adjustment.wide()->unified)
      files[edit.key] = edit.value.value_or("-");
    return files;
  }

  test::KindBench bench_;
  CreationWays ways_{.holds_starts = true};
  ClassContext context_;
  test::FakeBlockDevices* devices_ = nullptr;
  std::unique_ptr<ClassKind> kind_;
};

TEST_F(BlockioKindTest, LimitsAreWrittenBeforeTheStart) {
  bench_.Add("blockio", "slow");
  EXPECT_TRUE(kind_->HoldsStart(bench_.subjects[0], bench_.config));
  const ClassReport report = Run();
  EXPECT_EQ(bench_.files.tree.at(kIoMax), kSlow);
  const ContainerClass& mine = report.containers.at("id").at(0);
  EXPECT_TRUE(mine.active);
  EXPECT_EQ(mine.way, "before start");
  EXPECT_EQ(mine.in_force, kSlow);
  EXPECT_EQ(mine.source, "annotation x");
  ways_.holds_starts = false;
  EXPECT_FALSE(kind_->HoldsStart(bench_.subjects[0], bench_.config));
}

TEST_F(BlockioKindTest, WhatIsInForceIsOneLine) {
  devices_->Add("/dev/loop8", 7, 8);
  bench_.files.tree[kIoMax] =
      std::string(kSlow) + "\n7:8 rbps=5000000 wbps=max riops=max wiops=max\n";
  bench_.Add("blockio", "slow");
  EXPECT_EQ(Run().containers.at("id").at(0).in_force,
            std::string(kSlow) + "; 7:8 rbps=5000000 wbps=max riops=max wiops=max");
}

TEST_F(BlockioKindTest, TheRuntimeSetsWhatItCanAtCreation) {
  EXPECT_THAT(AtCreation("slow"), IsEmpty()) << "the worker has not looked for devices yet";
  (void)Run();
  EXPECT_THAT(AtCreation("slow"), ElementsAre(std::pair("io.max", kSlow)));
  EXPECT_THAT(AtCreation("light"), ElementsAre(std::pair("io.weight", "default 708")));
  EXPECT_THAT(AtCreation("slow", false), IsEmpty()) << "cgroup v1";
  // The kernel takes one device with each write, and runtimes write once.
  devices_->Add("/dev/loop8", 7, 8);
  (void)Run();
  EXPECT_THAT(AtCreation("slow"), IsEmpty());
  ways_.docker = true;
  EXPECT_THAT(
      AtCreation("slow"),
      ElementsAre(std::pair("io.max", std::string(kSlow) + "\n7:8 rbps=5000000 wbps=max riops=max "
                                                           "wiops=max")));
}

TEST_F(BlockioKindTest, AFileThatTheNodeLacksIsNotAskedFor) {
  bench_.files.tree.erase("sys/fs/cgroup/kubepods.slice/io.weight");
  (void)Run();
  EXPECT_THAT(AtCreation("light"), IsEmpty()) << "the runtime would refuse the container";
  bench_.files.tree.erase(kIoWeight);
  bench_.Add("blockio", "light");
  const ClassReport report = Run();
  EXPECT_FALSE(report.containers.at("id").at(0).active);
  EXPECT_THAT(report.containers.at("id").at(0).reason,
              HasSubstr("there is no sys/fs/cgroup/c/io.weight"));
}

TEST_F(BlockioKindTest, BfqsFileIsEnoughForAWeight) {
  bench_.files.tree.erase(kIoWeight);
  bench_.files.tree["sys/fs/cgroup/c/io.bfq.weight"] = "default 100\n";
  bench_.Add("blockio", "light");
  EXPECT_TRUE(Run().containers.at("id").at(0).active);
  EXPECT_EQ(bench_.files.tree.at("sys/fs/cgroup/c/io.bfq.weight"), "default 80");
}

TEST_F(BlockioKindTest, ADeviceThatIsPluggedInLaterGetsItsLimit) {
  devices_->all.clear();
  bench_.Add("blockio", "slow").running = true;
  const ClassReport before = Run();
  EXPECT_TRUE(before.classes.at(1).active);
  EXPECT_EQ(before.classes.at(1).reason, "no block device matches /dev/loop*");
  EXPECT_EQ(bench_.files.tree.at(kIoMax), "");
  devices_->Add("/dev/loop7", 7, 7);
  (void)Run();
  EXPECT_EQ(bench_.files.tree.at(kIoMax), kSlow);
}

// The kernel takes a device's line away with it, and knows its number no more.
TEST_F(BlockioKindTest, ADeviceThatIsUnpluggedLeavesNothingBehind) {
  devices_->Add("/dev/loop8", 7, 8);
  bench_.config.blockio.classes["slow"] = {{.devices = {"/dev/loop7"}, .read_bps = 5'000'000},
                                           {.devices = {"/dev/loop8"}, .read_bps = 6'000'000}};
  const std::string other = "7:8 rbps=6000000 wbps=max riops=max wiops=max";
  bench_.files.tree[kIoMax] = fmt::format("{}\n{}\n", kSlow, other);
  bench_.Add("blockio", "slow").running = true;
  ASSERT_EQ(Run().containers.at("id").at(0).in_force, fmt::format("{}; {}", kSlow, other));
  devices_->all.erase("/dev/loop7");
  bench_.files.tree[kIoMax] = other + "\n";
  bench_.files.on_write = [this](const std::string& path, std::string_view text) {
    bench_.files.refuses[path] = text.starts_with("7:7 ") ? ENODEV : 0;
  };
  const ClassReport report = Run();
  EXPECT_TRUE(report.classes.at(1).active) << report.classes.at(1).reason;
  EXPECT_EQ(report.classes.at(1).reason, "no block device matches /dev/loop7");
  EXPECT_EQ(report.containers.at("id").at(0).in_force, other);
  EXPECT_THAT(report.notes, IsEmpty()) << "no other program has written";
  EXPECT_THAT(bench_.files.written, IsEmpty());
  bench_.subjects.clear();
  EXPECT_THAT(Run().not_given_back, IsEmpty());
  EXPECT_EQ(bench_.files.tree.at(kIoMax), "7:8 rbps=max wbps=max riops=max wiops=max");
}

TEST_F(BlockioKindTest, AClassThatEndsIsTakenAway) {
  bench_.Add("blockio", "slow");
  (void)Run();
  bench_.config.blockio = {};
  bench_.subjects.clear();
  (void)Run();
  EXPECT_EQ(bench_.files.tree.at(kIoMax), "7:7 rbps=max wbps=max riops=max wiops=max");
  EXPECT_THAT(AtCreation("slow"), IsEmpty());
}

TEST_F(BlockioKindTest, WhatTheRuntimeHasSetEndsWithTheClass) {
  bench_.files.tree[kIoMax] = std::string(kSlow) + "\n";
  bench_.Add("blockio", "slow");
  EXPECT_EQ(Run().containers.at("id").at(0).way, "at creation");
  EXPECT_THAT(bench_.files.written, IsEmpty());
  bench_.subjects.clear();
  (void)Run();
  EXPECT_EQ(bench_.files.tree.at(kIoMax), "7:7 rbps=max wbps=max riops=max wiops=max");
}

TEST_F(BlockioKindTest, AContainerThatAwaitsItsCgroupHasItsClass) {
  bench_.Add("blockio", "slow").cgroup.clear();
  EXPECT_TRUE(Run().classes.at(1).active) << "containerd makes it at the start";
  bench_.subjects[0].running = true;
  EXPECT_EQ(Run().classes.at(1).reason, "the container has no cgroup");
}

TEST_F(BlockioKindTest, WhatTheKernelRefusesIsTold) {
  for (const int error : {EINVAL, ENODEV, EROFS, EIO}) {
    bench_.files.refuses[kIoMax] = error;
    bench_.subjects.clear();
    bench_.Add("blockio", "slow");
    const ClassReport report = Run();
    EXPECT_FALSE(report.classes.at(1).active) << error;
    EXPECT_THAT(report.classes.at(1).reason, HasSubstr("cannot write 7:7 rbps=5000000")) << error;
    EXPECT_TRUE(report.classes.at(0).active) << "another class";
  }
}

TEST_F(BlockioKindTest, WithoutTheControllerClassesAreInactive) {
  bench_.files.tree["sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  EXPECT_EQ(Run().classes.at(0).reason, "sys/fs/cgroup/cgroup.controllers has no io");
  bench_.files.tree.erase("sys/fs/cgroup/cgroup.controllers");
  EXPECT_THAT(Run().classes.at(0).reason, HasSubstr("there is no sys/fs/cgroup/blkio"));
  bench_.files.tree["sys/fs/cgroup/blkio/tasks"] = "";
  EXPECT_TRUE(Run().classes.at(0).active);
}

TEST_F(BlockioKindTest, TheRuntimeMayHaveTheClasses) {
  bench_.config.blockio = {.assign = BlockioConfig::Assign::kRuntime};
  bench_.config.namespaces["blockio"] = {"*"};
  test::ClassedPod classed;
  classed.pod.annotations = {{"blockioclass.resource-policy.nri.io/pod", "theirs"}};
  ChosenClasses chosen;
  const Status status = kind_->Choose(classed.container(), bench_.config, chosen);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(chosen.Find("blockio")->name, "theirs");
  Adjustment adjustment;
  kind_->AtCreation(chosen, bench_.config, true, adjustment);
  EXPECT_EQ(adjustment.wide()->blockio_class, "theirs");
  EXPECT_FALSE(kind_->HoldsStart({.chosen = chosen}, bench_.config));
  bench_.Add("blockio", "theirs");
  EXPECT_EQ(Run().containers.at("id").at(0).way, "by the runtime");
}

TEST_F(BlockioKindTest, AnUnknownClassIsRefusedOnlyWhereThePodAsks) {
  bench_.config.namespaces["blockio"] = {"*"};
  test::ClassedPod classed{.of_pool = {{"blockio", "slow"}}};
  classed.pod.annotations = {{"blockioclass.resource-policy.nri.io/pod", "gold"}};
  ChosenClasses chosen;
  const Status status = kind_->Choose(classed.container(), bench_.config, chosen);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("\"gold\""));
  EXPECT_EQ(chosen.Find("blockio")->name, "slow") << "a container that exists has its pool's";
  bench_.Add("blockio", "gold");
  EXPECT_THAT(Run().containers.at("id").at(0).reason,
              HasSubstr("no block I/O parameters for class \"gold\""));
}

}  // namespace
}  // namespace resmgr
