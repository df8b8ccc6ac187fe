// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_files.h"

#include <cerrno>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/keeper_fixture.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// While a partition isolates CPUs 2-3, the kernel shows the mask of unbound work without them.
TEST(HostFilesTest, TheMaskOfUnboundWorkIsTheWrittenOne) {
  const TempDir root;
  const std::string directory = "sys/devices/virtual/workqueue/";
  const std::string mask = directory + "cpumask";
  RealHostFiles files(root.path(), [](std::string_view) {});
  EXPECT_EQ(files.Read(mask).status().code(), StatusCode::kNotFound);
  root.Put(mask, "f3\n");
  EXPECT_EQ(files.Read(mask).value(), "f3\n") << "before Linux 6.9";
  root.Put(directory + "cpumask_requested", "ff\n");
  EXPECT_EQ(files.Read(mask).value(), "ff\n");
  EXPECT_EQ(files.Write(mask, "0f"), 0);
  EXPECT_EQ(std::ifstream(root.File(mask)).get(), '0') << "the other file cannot be written";
}

// The kernel writes the names of mounts and of network cards into these files as they are.
TEST(HostFilesTest, NamesThatOthersChooseMayHaveAnyBytes) {
  const TempDir root;
  RealHostFiles files(root.path(), [](std::string_view) {});
  for (const char* const file : {"proc/mounts", "proc/interrupts"}) {
    root.Put(file, "nas:/caf\xc3\xa9 /data nfs rw 0 0\n");
    EXPECT_EQ(files.Read(file).value_or("refused"), "nas:/caf\xc3\xa9 /data nfs rw 0 0\n");
  }
  root.Put("proc/irq/4/smp_affinity", "\xc3\n");
  EXPECT_EQ(files.Read("proc/irq/4/smp_affinity").status().code(), StatusCode::kInvalidArgument);
}

// A kill between the truncation and the write, or a full disk, would lose an administrator's file.
TEST(HostFilesTest, AFileOfTheDiskIsReplacedAsAWhole) {
  const TempDir root;
  const std::string file = "etc/default/irqbalance";
  root.Put(file, "IRQBALANCE_ARGS=\n");
  std::ifstream opened(root.File(file));
  RealHostFiles files(root.path(), [](std::string_view) {});
  EXPECT_EQ(files.Write(file, "IRQBALANCE_BANNED_CPULIST=2\n"), 0);
  EXPECT_EQ(files.Read(file).value(), "IRQBALANCE_BANNED_CPULIST=2\n");
  std::string before;
  std::getline(opened, before);
  EXPECT_EQ(before, "IRQBALANCE_ARGS=") << "a process that has it open sees no mixture";
}

constexpr const char* kLinesFile = "c/io.max";
constexpr const char* kNoLimits = "rbps=max wbps=max riops=max wiops=max";

class DeviceLinesTest : public testing::Test {
 protected:
  DeviceLinesTest() {
    host_.tree = {
        {kLinesFile, ""}, {"c/io.weight", "default 100\n"}, {"c/cpu.max", "max 100000\n"}};
    host_.keeps = [this](std::string_view path, std::string_view text) {
      return Kept(std::string(path), std::string(text));
    };
  }
  // The kernel takes one device with each write, and shows none without limits.
  std::string Kept(const std::string& path, const std::string& text) {
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    if (path == "c/cpu.max") return text + "\n";
    std::map<std::string, std::string> lines;
    const auto add = [&lines](const std::string& line) {
      const size_t space = line.find(' ');
      if (space != std::string::npos) lines[line.substr(0, space)] = line.substr(space + 1);
    };
    std::string rest = host_.tree[path];
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      add(rest.substr(0, end));
      rest = rest.substr(end + 1);
    }
    add(text);
    std::string kept;
    for (const auto& [key, value] : lines) {
      const bool gone = value == kNoLimits || value == "default" ||
                        (path.find("throttle") != std::string::npos && value == "0");
      if (!gone) kept += fmt::format("{} {}\n", key, value);
    }
    return kept;
  }

  test::FakeHostFiles host_;
  DeviceLines files_{host_};
};

TEST_F(DeviceLinesTest, EachLineIsAWriteOfItsOwn) {
  EXPECT_EQ(files_.Write(kLinesFile,
                         "7:7 rbps=5 wbps=max riops=max wiops=max\n8:0 rbps=6 wbps=max "
                         "riops=max wiops=max"),
            0);
  EXPECT_EQ(files_.Read(kLinesFile).value(),
            "7:7 rbps=5 wbps=max riops=max wiops=max\n8:0 rbps=6 wbps=max riops=max wiops=max");
  host_.written.clear();
  EXPECT_EQ(files_.Write(kLinesFile, "8:0 rbps=7 wbps=max riops=max wiops=max"), 0);
  EXPECT_THAT(host_.written, ElementsAre(fmt::format("c/io.max 7:7 {}", kNoLimits),
                                         "c/io.max 8:0 rbps=7 wbps=max riops=max wiops=max"));
  EXPECT_EQ(files_.Write(kLinesFile, "\n"), 0);
  EXPECT_EQ(files_.Read(kLinesFile).value(), "");
}

TEST_F(DeviceLinesTest, LinesHaveOneOrder) {
  host_.tree[kLinesFile] =
      "253:0 rbps=1 wbps=max riops=max wiops=max\n8:16 rbps=1 wbps=max riops=max "
      "wiops=max\n8:0 rbps=max wbps=max riops=max wiops=max\n";
  EXPECT_EQ(files_.Read(kLinesFile).value(),
            "8:16 rbps=1 wbps=max riops=max wiops=max\n253:0 rbps=1 wbps=max riops=max wiops=max");
  host_.tree["c/io.weight"] = "8:0 50\ndefault 100\n";
  EXPECT_EQ(files_.Read("c/io.weight").value(), "default 100\n8:0 50");
  EXPECT_EQ(files_.Read("c/cpu.max").value(), "max 100000\n") << "no such file";
}

TEST_F(DeviceLinesTest, ADeviceThatIsGoneDoesNotKeepTheOthersFromTheirLimits) {
  host_.on_write = [this](const std::string& path, std::string_view text) {
    host_.refuses[path] = text.starts_with("9:9") ? ENODEV : 0;
  };
  EXPECT_EQ(files_.Write("c/io.weight", "default 50\n9:9 1\n10:0 2"), ENODEV);
  EXPECT_EQ(files_.Read("c/io.weight").value(), "default 50\n10:0 2");
}

TEST_F(DeviceLinesTest, AKeeperGivesBackTheLinesThatWereThere) {
  const std::string before = "8:0 rbps=9 wbps=max riops=max wiops=max";
  host_.tree[kLinesFile] = before + "\n";
  TempDir directory;
  ClassJournal journal(directory.path(), "boot");
  HostKeeper keeper(files_, journal);
  const std::string wanted = "7:7 rbps=5 wbps=max riops=max wiops=max";
  const HostKeeper::Result result = keeper.Keep({{.path = kLinesFile, .text = wanted}});
  EXPECT_TRUE(result.outcomes.at(kLinesFile).status.ok());
  EXPECT_EQ(files_.Read(kLinesFile).value(), wanted);
  host_.written.clear();
  (void)keeper.Keep({{.path = kLinesFile, .text = wanted}});
  EXPECT_THAT(host_.written, IsEmpty()) << "what is in force is not written again";
  (void)keeper.Keep({});
  EXPECT_EQ(files_.Read(kLinesFile).value(), before);
}

TEST_F(DeviceLinesTest, AKeeperGivesBackWhatARefusedTextHasChanged) {
  const TempDir directory;
  host_.on_write = [this](const std::string& path, std::string_view text) {
    host_.refuses[path] = text.starts_with("7:0 ") && !text.ends_with("default") ? EOPNOTSUPP : 0;
  };
  for (const bool killed : {false, true}) {
    ClassJournal journal(directory.path() + "/classes", "");
    HostKeeper keeper(files_, journal);
    const HostKeeper::Result refused = keeper.Keep({{"c/io.weight", "default 708\n7:0 2930"}});
    EXPECT_EQ(refused.outcomes.at("c/io.weight").error, EOPNOTSUPP);
    EXPECT_EQ(host_.tree.at("c/io.weight"), "default 708\n");
    if (killed) continue;
    EXPECT_THAT(keeper.Keep({}).notes, IsEmpty());
    EXPECT_EQ(host_.tree.at("c/io.weight"), "default 100\n");
  }
  ClassJournal journal(directory.path() + "/classes", "");
  EXPECT_THAT(HostKeeper(files_, journal).Keep({}).notes, IsEmpty());
  EXPECT_EQ(host_.tree.at("c/io.weight"), "default 100\n");
}

TEST_F(DeviceLinesTest, AKillBetweenTwoLinesLosesNothing) {
  const TempDir directory;
  const auto keep = [&](const std::vector<HostValue>& values) {
    ClassJournal journal(directory.path() + "/classes", "");
    return HostKeeper(files_, journal).Keep(values).notes;
  };
  const auto work = [&] {
    keep({{"c/io.weight", "default 50\n7:0 1\n8:0 2"}});
    keep({{"c/io.weight", "default 60\n8:0 3\n9:0 4"}});
    keep({});
  };
  test::KillBetweenSteps(host_, work, [&](int steps) {
    EXPECT_THAT(keep({}), IsEmpty()) << steps;
    EXPECT_EQ(host_.tree.at("c/io.weight"), "default 100\n") << steps;
  });
  EXPECT_TRUE(MixesDeviceLines("c/io.weight", "7:0 7", {"", "7:0 7\n8:0 1"}));
  EXPECT_FALSE(MixesDeviceLines("c/io.weight", "7:0 8", {"", "7:0 7\n8:0 1"}));
  EXPECT_FALSE(MixesDeviceLines("c/cpu.max", "1", {"1"}));
}

// Writes any lines over any others.
TEST_F(DeviceLinesTest, PropertyAWrittenTextIsRead) {
  std::mt19937 random(11);
  const auto text = [&random](bool weights) {
    std::string lines = weights ? fmt::format("default {}", 1 + random() % 1000) : "";
    for (unsigned device = 0; device < 4; ++device) {
      if (random() % 2 == 0) continue;
      lines.append(lines.empty() ? "" : "\n")
          .append(weights ? fmt::format("8:{} {}", device, 1 + random() % 1000)
                          : fmt::format("8:{} rbps={} wbps=max riops=max wiops=max", device,
                                        random() % 3 + 1));
    }
    return lines;
  };
  for (int round = 0; round < 500; ++round) {
    const bool weights = random() % 2 == 0;
    const std::string path = weights ? "c/io.weight" : kLinesFile;
    const std::string wanted = text(weights);
    ASSERT_EQ(files_.Write(path, wanted), 0);
    ASSERT_EQ(files_.Read(path).value(), wanted);
  }
}

}  // namespace
}  // namespace resmgr
