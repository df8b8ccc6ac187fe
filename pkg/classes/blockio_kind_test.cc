// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pkg/base/status.h"
#include "pkg/classes/blockio_limits.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/host_files.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/classes/testing/fake_host_files.h"
#include "pkg/classes/testing/keeper_fixture.h"
#include "pkg/kube/names.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Device files in memory. Thread-compatible.
class FakeBlockDevices final : public BlockDevices {
 public:
  std::map<std::string, FoundDevice> all;  // by path

  void Add(const std::string& path, uint32_t major, uint32_t minor) {
    all[path] = {.path = path, .is_block = true, .number = {major, minor}};
  }
  std::vector<FoundDevice> Find(std::string_view glob) override {
    std::vector<FoundDevice> found;
    for (const auto& [path, device] : all)
      if (MatchesGlob(glob, path)) found.push_back(device);
    return found;
  }
};

constexpr const char* kIoMax = "sys/fs/cgroup/c/io.max";
constexpr const char* kIoWeight = "sys/fs/cgroup/c/io.weight";
constexpr const char* kSlow = "7:7 rbps=5000000 wbps=max riops=max wiops=max";

class BlockioKindTest : public test::KeeperTest {
 protected:
  BlockioKindTest() {
    auto devices = std::make_unique<FakeBlockDevices>();
    devices_ = devices.get();
    devices_->Add("/dev/loop7", 7, 7);
    files_.tree = {{"sys/fs/cgroup/cgroup.controllers", "cpu io memory\n"},
                   {kIoMax, ""},
                   {kIoWeight, "default 100\n"},
                   {"sys/fs/cgroup/kubepods.slice/io.max", ""},
                   {"sys/fs/cgroup/kubepods.slice/io.weight", "default 100\n"}};
    config_.blockio.classes = {{"light", {{.weight = 80}}},
                               {"slow", {{.devices = {"/dev/loop*"}, .read_bps = 5'000'000}}}};
    context_.door = [this] { return ways_; };
    kind_ = MakeBlockioKind(context_, std::move(devices));
  }
  ClassReport Run() { return KeeperTest::Run({kind_.get()}, subjects_); }
  // The files that the runtime sets for a new container with this class.
  std::map<std::string, std::string> AtCreation(const std::string& name, bool unified = true) {
    ChosenClasses chosen;
    chosen.by_name["blockio"] = {.name = name};
    Adjustment adjustment;
    kind_->AtCreation(chosen, config_, unified, adjustment);
    std::map<std::string, std::string> files;
    if (adjustment.wide() == nullptr) return files;
    for (const auto& edit : adjustment.wide()->unified)
      files[edit.key] = edit.value.value_or("-");
    return files;
  }

  CreationWays ways_{.holds_starts = true};
  ClassContext context_;
  FakeBlockDevices* devices_ = nullptr;
  std::unique_ptr<ClassKind> kind_;
};

TEST_F(BlockioKindTest, LimitsAreWrittenBeforeTheStart) {
  Add("blockio", "slow");
  EXPECT_TRUE(kind_->HoldsStart(subjects_[0], config_));
  const ClassReport report = Run();
  EXPECT_EQ(files_.tree.at(kIoMax), kSlow);
  const ContainerClass& mine = report.containers.at("id").at(0);
  EXPECT_TRUE(mine.active);
  EXPECT_EQ(mine.way, "before start");
  EXPECT_EQ(mine.in_force, kSlow);
  EXPECT_EQ(mine.source, "annotation x");
  ways_.holds_starts = false;
  EXPECT_FALSE(kind_->HoldsStart(subjects_[0], config_));
}

TEST_F(BlockioKindTest, WhatIsInForceIsOneLine) {
  devices_->Add("/dev/loop8", 7, 8);
  files_.tree[kIoMax] = std::string(kSlow) + "\n7:8 rbps=5000000 wbps=max riops=max wiops=max\n";
  Add("blockio", "slow");
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
  files_.tree.erase("sys/fs/cgroup/kubepods.slice/io.weight");
  (void)Run();
  EXPECT_THAT(AtCreation("light"), IsEmpty()) << "the runtime would refuse the container";
  files_.tree.erase(kIoWeight);
  Add("blockio", "light");
  const ClassReport report = Run();
  EXPECT_FALSE(report.containers.at("id").at(0).active);
  EXPECT_THAT(report.containers.at("id").at(0).reason,
              HasSubstr("there is no sys/fs/cgroup/c/io.weight"));
}

TEST_F(BlockioKindTest, BfqsFileIsEnoughForAWeight) {
  files_.tree.erase(kIoWeight);
  files_.tree["sys/fs/cgroup/c/io.bfq.weight"] = "default 100\n";
  Add("blockio", "light");
  EXPECT_TRUE(Run().containers.at("id").at(0).active);
  EXPECT_EQ(files_.tree.at("sys/fs/cgroup/c/io.bfq.weight"), "default 80");
}

TEST_F(BlockioKindTest, ADeviceThatIsPluggedInLaterGetsItsLimit) {
  devices_->all.clear();
  Add("blockio", "slow").running = true;
  const ClassReport before = Run();
  EXPECT_TRUE(before.classes.at(1).active);
  EXPECT_EQ(before.classes.at(1).reason, "no block device matches /dev/loop*");
  EXPECT_EQ(files_.tree.at(kIoMax), "");
  devices_->Add("/dev/loop7", 7, 7);
  (void)Run();
  EXPECT_EQ(files_.tree.at(kIoMax), kSlow);
}

// The kernel takes a device's line away with it, and knows its number no more.
TEST_F(BlockioKindTest, ADeviceThatIsUnpluggedLeavesNothingBehind) {
  devices_->Add("/dev/loop8", 7, 8);
  config_.blockio.classes["slow"] = {{.devices = {"/dev/loop7"}, .read_bps = 5'000'000},
                                     {.devices = {"/dev/loop8"}, .read_bps = 6'000'000}};
  const std::string other = "7:8 rbps=6000000 wbps=max riops=max wiops=max";
  files_.tree[kIoMax] = fmt::format("{}\n{}\n", kSlow, other);
  Add("blockio", "slow").running = true;
  ASSERT_EQ(Run().containers.at("id").at(0).in_force, fmt::format("{}; {}", kSlow, other));
  devices_->all.erase("/dev/loop7");
  files_.tree[kIoMax] = other + "\n";
  files_.on_write = [this](const std::string& path, std::string_view text) {
    files_.refuses[path] = text.starts_with("7:7 ") ? ENODEV : 0;
  };
  const ClassReport report = Run();
  EXPECT_TRUE(report.classes.at(1).active) << report.classes.at(1).reason;
  EXPECT_EQ(report.classes.at(1).reason, "no block device matches /dev/loop7");
  EXPECT_EQ(report.containers.at("id").at(0).in_force, other);
  EXPECT_THAT(report.notes, IsEmpty()) << "no other program has written";
  EXPECT_THAT(files_.written, IsEmpty());
  subjects_.clear();
  EXPECT_THAT(Run().not_given_back, IsEmpty());
  EXPECT_EQ(files_.tree.at(kIoMax), "7:8 rbps=max wbps=max riops=max wiops=max");
}

TEST_F(BlockioKindTest, AClassThatEndsIsTakenAway) {
  Add("blockio", "slow");
  (void)Run();
  config_.blockio = {};
  subjects_.clear();
  (void)Run();
  EXPECT_EQ(files_.tree.at(kIoMax), "7:7 rbps=max wbps=max riops=max wiops=max");
  EXPECT_THAT(AtCreation("slow"), IsEmpty());
}

TEST_F(BlockioKindTest, WhatTheRuntimeHasSetEndsWithTheClass) {
  files_.tree[kIoMax] = std::string(kSlow) + "\n";
  Add("blockio", "slow");
  EXPECT_EQ(Run().containers.at("id").at(0).way, "at creation");
  EXPECT_THAT(files_.written, IsEmpty());
  subjects_.clear();
  (void)Run();
  EXPECT_EQ(files_.tree.at(kIoMax), "7:7 rbps=max wbps=max riops=max wiops=max");
}

TEST_F(BlockioKindTest, AContainerThatAwaitsItsCgroupHasItsClass) {
  Add("blockio", "slow").cgroup.clear();
  EXPECT_TRUE(Run().classes.at(1).active) << "containerd makes it at the start";
  subjects_[0].running = true;
  EXPECT_EQ(Run().classes.at(1).reason, "the container has no cgroup");
}

TEST_F(BlockioKindTest, WhatTheKernelRefusesIsTold) {
  for (const int error : {EINVAL, ENODEV, EROFS, EIO}) {
    files_.refuses[kIoMax] = error;
    subjects_.clear();
    Add("blockio", "slow");
    const ClassReport report = Run();
    EXPECT_FALSE(report.classes.at(1).active) << error;
    EXPECT_THAT(report.classes.at(1).reason, HasSubstr("cannot write 7:7 rbps=5000000")) << error;
    EXPECT_TRUE(report.classes.at(0).active) << "another class";
  }
}

TEST_F(BlockioKindTest, WithoutTheControllerClassesAreInactive) {
  files_.tree["sys/fs/cgroup/cgroup.controllers"] = "cpu\n";
  EXPECT_EQ(Run().classes.at(0).reason, "sys/fs/cgroup/cgroup.controllers has no io");
  files_.tree.erase("sys/fs/cgroup/cgroup.controllers");
  EXPECT_THAT(Run().classes.at(0).reason, HasSubstr("there is no sys/fs/cgroup/blkio"));
  files_.tree["sys/fs/cgroup/blkio/tasks"] = "";
  EXPECT_TRUE(Run().classes.at(0).active);
}

TEST_F(BlockioKindTest, TheRuntimeMayHaveTheClasses) {
  config_.blockio = {.assign = BlockioConfig::Assign::kRuntime};
  config_.namespaces["blockio"] = {"*"};
  test::ClassedPod classed;
  classed.pod.annotations = {{"blockioclass.resource-policy.nri.io/pod", "theirs"}};
  ChosenClasses chosen;
  const Status status = kind_->Choose(classed.container(), config_, chosen);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(chosen.Find("blockio")->name, "theirs");
  Adjustment adjustment;
  kind_->AtCreation(chosen, config_, true, adjustment);
  EXPECT_EQ(adjustment.wide()->blockio_class, "theirs");
  EXPECT_FALSE(kind_->HoldsStart({.chosen = chosen}, config_));
  Add("blockio", "theirs");
  EXPECT_EQ(Run().containers.at("id").at(0).way, "by the runtime");
}

TEST_F(BlockioKindTest, AnUnknownClassIsRefusedOnlyWhereThePodAsks) {
  config_.namespaces["blockio"] = {"*"};
  test::ClassedPod classed{.of_pool = {{"blockio", "slow"}}};
  classed.pod.annotations = {{"blockioclass.resource-policy.nri.io/pod", "gold"}};
  ChosenClasses chosen;
  const Status status = kind_->Choose(classed.container(), config_, chosen);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("\"gold\""));
  EXPECT_EQ(chosen.Find("blockio")->name, "slow") << "a container that exists has its pool's";
  Add("blockio", "gold");
  EXPECT_THAT(Run().containers.at("id").at(0).reason,
              HasSubstr("no block I/O parameters for class \"gold\""));
}

class BlockioLimitsTest : public testing::Test {
 protected:
  BlockioLimitsTest() {
    devices_.Add("/dev/loop7", 7, 7);
    devices_.Add("/dev/sda", 8, 0);
    devices_.Add("/dev/sda1", 8, 1);
    devices_.Add("/dev/sdb", 8, 16);
    devices_.all["/dev/null"] = {.path = "/dev/null"};
    files_.tree["sys/dev/block/8:1/partition"] = "1\n";
    files_.tree["sys/dev/block/8:1/../dev"] = "8:0\n";
    files_.tree["sys/dev/block/8:0/queue/scheduler"] = "none mq-deadline [bfq]\n";
    files_.tree["sys/dev/block/8:16/queue/scheduler"] = "[none] mq-deadline\n";
  }
  BlockioLimits Resolve(const std::vector<BlockioItem>& items) {
    return ResolveBlockio(items, devices_, files_);
  }

  FakeBlockDevices devices_;
  test::FakeHostFiles files_;
};

// Weights and limits of block I/O classes.
TEST_F(BlockioLimitsTest, AWeightIsThatOfAllDevices) {
  EXPECT_THAT(UnifiedFiles(Resolve({{.weight = 80}})),
              ElementsAre(BlockioFile{"io.weight", "default 708"},
                          BlockioFile{"io.bfq.weight", "default 80"}));
  EXPECT_EQ(UnifiedWeight(10), 1);
  EXPECT_EQ(UnifiedWeight(100), 910);
  EXPECT_EQ(UnifiedWeight(1000), 10'000);
}

TEST_F(BlockioLimitsTest, ThrottlesAreThoseOfTheDevice) {
  const BlockioLimits limits =
      Resolve({{.devices = {"/dev/loop7"}, .read_bps = 50'000'000, .write_iops = 5'000}});
  EXPECT_THAT(
      UnifiedFiles(limits),
      ElementsAre(BlockioFile{"io.max", "7:7 rbps=50000000 wbps=max riops=max wiops=5000"}));
  EXPECT_THAT(LegacyFiles(limits),
              ElementsAre(BlockioFile{"blkio.throttle.read_bps_device", "7:7 50000000"},
                          BlockioFile{"blkio.throttle.write_iops_device", "7:7 5000"}));
  EXPECT_THAT(limits.notes, IsEmpty());
}

TEST_F(BlockioLimitsTest, ALaterItemWinsValueByValue) {
  const BlockioLimits limits =
      Resolve({{.devices = {"/dev/loop7"}, .read_bps = 50'000'000, .write_iops = 5'000},
               {.devices = {"/dev/loop*"}, .read_bps = 100'000'000}});
  EXPECT_EQ(UnifiedFiles(limits).at(0).text, "7:7 rbps=100000000 wbps=max riops=max wiops=5000");
  EXPECT_THAT(UnifiedFiles(Resolve({{.devices = {"/dev/loop7"}, .read_bps = 5},
                                    {.devices = {"/dev/loop7"}, .read_bps = 0}})),
              ElementsAre(BlockioFile{"io.max", ""}))
      << "0 takes a limit away";
}

TEST_F(BlockioLimitsTest, APartitionIsItsDisk) {
  const BlockioLimits limits = Resolve({{.devices = {"/dev/sda1"}, .read_bps = 5}});
  EXPECT_EQ(UnifiedFiles(limits).at(0).text, "8:0 rbps=5 wbps=max riops=max wiops=max");
  EXPECT_THAT(limits.notes,
              ElementsAre("/dev/sda1 is a partition: the limits are those of its whole disk 8:0"));
}

TEST_F(BlockioLimitsTest, WhatHasNoEffectIsNoted) {
  EXPECT_THAT(
      Resolve({{.devices = {"/dev/nvme*", "/dev/null"}, .read_bps = 5}}).notes,
      ElementsAre("no block device matches /dev/nvme*", "no block device matches /dev/null"));
  const BlockioLimits weights = Resolve({{.devices = {"/dev/sda", "/dev/sdb"}, .weight = 100}});
  EXPECT_THAT(weights.notes, ElementsAre(HasSubstr("8:16: with the scheduler none a weight")));
  EXPECT_THAT(UnifiedFiles(weights),
              ElementsAre(BlockioFile{"io.bfq.weight", "default 100\n8:0 100"}));
  std::vector<BlockioItem> many;
  many.reserve(100);
  for (int i = 0; i < 100; ++i)
    many.push_back({.devices = {fmt::format("/dev/x{}", i)}, .read_bps = 1});
  const BlockioLimits noted = Resolve(many);
  EXPECT_EQ(noted.notes.size(), BlockioLimits::kMostNotes);
  EXPECT_EQ(noted.notes.back(), "93 more such notes");
}

// The kernel answers "Operation not supported" for a disk whose scheduler or io.cost is another.
TEST_F(BlockioLimitsTest, AWeightIsInTheFileThatTheDiskKnows) {
  const std::vector<BlockioItem> items = {{.weight = 10},
                                          {.devices = {"/dev/sda", "/dev/sdb"}, .weight = 100}};
  files_.tree["sys/fs/cgroup/io.cost.qos"] =
      "8:0 enable=0 ctrl=auto\n8:16 enable=1 ctrl=auto\n8:160 enable=1 ctrl=auto\n";
  const BlockioLimits weights = Resolve(items);
  EXPECT_THAT(weights.notes, IsEmpty());
  EXPECT_THAT(UnifiedFiles(weights),
              ElementsAre(BlockioFile{"io.weight", "default 1\n8:16 910"},
                          BlockioFile{"io.bfq.weight", "default 10\n8:0 100"}));
  EXPECT_THAT(LegacyFiles(weights), ElementsAre(BlockioFile{"blkio.bfq.weight", "10"},
                                                BlockioFile{"blkio.bfq.weight_device", "8:0 100"}));
  files_.tree["sys/fs/cgroup/io.cost.qos"] = "";
  EXPECT_THAT(UnifiedFiles(Resolve(items)),
              ElementsAre(BlockioFile{"io.weight", "default 1"},
                          BlockioFile{"io.bfq.weight", "default 10\n8:0 100"}));
}

TEST_F(BlockioLimitsTest, ADeviceThatIsPluggedInLaterCountsTheNextTime) {
  const std::vector<BlockioItem> items = {{.devices = {"/dev/nvme*n1"}, .read_bps = 5}};
  EXPECT_THAT(UnifiedFiles(Resolve(items)), IsEmpty());
  devices_.Add("/dev/nvme0n1", 259, 0);
  EXPECT_EQ(UnifiedFiles(Resolve(items)).at(0).text, "259:0 rbps=5 wbps=max riops=max wiops=max");
}

// For any items, the texts have the form in which they are read back, and each device has the value
// of the last item that sets it.
TEST_F(BlockioLimitsTest, PropertyTheLastItemOfEachDeviceCounts) {
  std::mt19937 random(7);
  const std::vector<std::string> globs = {"/dev/loop7", "/dev/sd*", "/dev/sda1", "/dev/sdb",
                                          "/dev/*"};
  for (int round = 0; round < 300; ++round) {
    std::vector<BlockioItem> items(random() % 5);
    std::map<std::string, uint64_t> expected;
    for (BlockioItem& item : items) {
      item.devices = {globs[random() % globs.size()]};
      if (random() % 3 != 0) item.read_bps = random() % 4;
      if (!item.read_bps) item.weight = 10 + static_cast<int64_t>(random() % 991);
      for (const auto& [path, device] : devices_.all) {
        if (!device.is_block || !item.read_bps || !MatchesGlob(item.devices[0], path)) continue;
        expected[path == "/dev/sda1" ? "/dev/sda" : path] = *item.read_bps;
      }
    }
    const BlockioLimits limits = Resolve(items);
    for (const auto& [path, value] : expected)
      EXPECT_EQ(limits.devices.at(devices_.all.at(path).number).read_bps, value) << path;
    for (const auto& files : {UnifiedFiles(limits), LegacyFiles(limits)})
      for (const BlockioFile& file : files)
        EXPECT_EQ(NormalDeviceLines("c/" + file.name, file.text), file.text) << file.name;
  }
}

class BlockDevicesTest : public testing::Test {
 protected:
  BlockDevicesTest() {
    for (const char* const directory : {"dev", "dev/disk", "dev/disk/by-id"})
      ::mkdir(fmt::format("{}/{}", root_.path(), directory).c_str(), 0700);
    for (const char* const file : {"dev/sda", "dev/sdb", "dev/.hidden"})
      std::ofstream(fmt::format("{}/{}", root_.path(), file)).put('x');
  }
  std::vector<std::string> Paths(std::string_view glob) const {
    std::vector<std::string> paths;
    for (const FoundDevice& device : HostBlockDevices(root_.path() + "/").Find(glob))
      paths.push_back(device.path);
    return paths;
  }

  TempDir root_;
};

TEST_F(BlockDevicesTest, AGlobMatchesNamesOfOneDirectory) {
  EXPECT_THAT(Paths("/dev/sd*"), ElementsAre("/dev/sda", "/dev/sdb"));
  EXPECT_THAT(Paths("/dev/*"), ElementsAre("/dev/disk", "/dev/sda", "/dev/sdb"));
  EXPECT_THAT(Paths("/d?v/sd[b-z]"), ElementsAre("/dev/sdb"));
  EXPECT_THAT(Paths("//dev//sda"), ElementsAre("/dev/sda"));
  EXPECT_THAT(Paths("/dev/nvme*"), IsEmpty());
  EXPECT_THAT(Paths("/nowhere/*/x"), IsEmpty());
}

TEST_F(BlockDevicesTest, ALinkIsWhereItLeads) {
  ASSERT_EQ(::symlink("../../sda", (root_.path() + "/dev/disk/by-id/ata-SSD_1").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (root_.path() + "/dev/disk/by-id/ata-SSD_2").c_str()), 0);
  EXPECT_THAT(Paths("/dev/disk/by-id/*SSD*"), ElementsAre("/dev/disk/by-id/ata-SSD_1"));
}

TEST_F(BlockDevicesTest, OnlyBlockDevicesHaveNumbers) {
  EXPECT_FALSE(HostBlockDevices(root_.path()).Find("/dev/sda").at(0).is_block);
  const std::string disk = root_.path() + "/dev/loop7";
  if (::mknod(disk.c_str(), S_IFBLK | 0600, makedev(7, 7)) != 0)
    GTEST_SKIP() << "no right to make device files";
  const FoundDevice expected{.path = "/dev/loop7", .is_block = true, .number = {7, 7}};
  EXPECT_THAT(HostBlockDevices(root_.path()).Find("/dev/loop?"), ElementsAre(expected));
}

}  // namespace
}  // namespace resmgr
