// SPDX-License-Identifier: Apache-2.0
#include "pkg/usage/usage_reader.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;
using testing::SizeIs;

class UsageReaderTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) const { root_.Put(path, text); }
  void PutMachine() const {
    Put("proc/stat", "cpu  1 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 9 0 0 0 0 0 0\nintr 1\n");
    Put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 4 kB\nNode 0 MemFree: 1 kB\n");
    Put("sys/devices/system/node/node0/numastat", "local_node 5\nother_node 1\n");
    Put("sys/devices/system/node/online", "0\n");
  }
  // A container of cgroup v2.
  void PutUnified(const std::string& id, int usage_usec = 1000) const {
    Put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    const std::string directory = "sys/fs/cgroup/kubepods/pod1/" + id;
    Put(directory + "/cpu.stat", fmt::format("usage_usec {}\nnr_periods 4\nnr_throttled 1\n"
                                             "throttled_usec 9\n",
                                             usage_usec));
    Put(directory + "/cpu.pressure", "some avg10=1.00 avg60=2.00 avg300=0.00 total=1\n");
    Put(directory + "/memory.current", "4096\n");
    Put(directory + "/memory.pressure", "some avg10=3.00 avg60=4.00 avg300=0.00 total=1\n");
    Put(directory + "/memory.numa_stat", "anon N0=4096 N1=0\nfile N0=0 N1=8192\n");
    Put(directory + "/memory.events", "high 2\noom 1\noom_kill 1\n");
    Put(directory + "/memory.max", "8192\n");
    Put(directory + "/memory.high", "max\n");
    Put("sys/fs/cgroup/kubepods/pod1/memory.events", "high 2\noom 1\noom_kill 3\n");
    Put("sys/fs/cgroup/kubepods/pod1/cpu.stat", "usage_usec 5\nnr_periods 8\nnr_throttled 3\n");
  }
  static UsageSubject Subject(const std::string& id) {
    return {.id = id, .cgroup_parent = "/kubepods/pod1"};
  }
  UsageReader Reader() const { return {root_.path(), in_hand_}; }

  const TempDir root_;
  const std::shared_ptr<FileInHand> in_hand_ = std::make_shared<FileInHand>();
};

TEST_F(UsageReaderTest, ReadsCgroupV2) {
  PutMachine();
  PutUnified("abc");
  UsageReader reader(root_.path(), in_hand_);
  const UsageCounters counters = reader.Read({Subject("abc")});
  ASSERT_EQ(counters.containers.size(), 1U);
  const ContainerCounters& container = counters.containers.at("abc");
  EXPECT_EQ(container.cpu.usage_ns, 1'000'000U);
  EXPECT_EQ(container.cpu.throttled, 1U);
  EXPECT_EQ(container.pod_cpu.throttled, 3U);
  EXPECT_EQ(container.pod_cgroup, "/sys/fs/cgroup/kubepods/pod1") << "for a shell on the host";
  EXPECT_EQ(container.cgroup, "/sys/fs/cgroup/kubepods/pod1/abc");
  EXPECT_DOUBLE_EQ(container.cpu_pressure->some60, 2);
  EXPECT_DOUBLE_EQ(container.memory_pressure->some10, 3);
  EXPECT_EQ(container.memory_bytes, 4096U);
  EXPECT_THAT(container.memory_by_node, ElementsAre(Pair(0, 4096), Pair(1, 8192)));
  EXPECT_EQ(container.events.high, 2U);
  EXPECT_EQ(container.events.oom_kills, 1U);
  EXPECT_EQ(container.memory_limit, 8192U);
  EXPECT_EQ(container.memory_high, std::nullopt) << "max";
  EXPECT_TRUE(counters.unified);
  EXPECT_EQ(counters.cpus.at(0).idle, 9U);
  EXPECT_EQ(counters.nodes.at(0).total_bytes, 4096);
  EXPECT_EQ(counters.nodes.at(0).other_pages, 1U);
  EXPECT_THAT(counters.notes, IsEmpty());
  EXPECT_EQ(counters.files, 1U + 10U + 2U);

  Put("sys/fs/cgroup/kubepods/pod1/abc/memory.events", "high 0\noom 0\noom_kill 0\n");
  const UsageCounters calm = reader.Read({Subject("abc")});
  EXPECT_EQ(calm.containers.at("abc").memory_limit, std::nullopt);
  EXPECT_EQ(calm.files, 1U + 8U + 2U) << "limits that are not reached are not read";
}

TEST_F(UsageReaderTest, ReadsCgroupV1AndPressureOfAHybridMount) {
  PutMachine();
  const std::string path = "/kubepods/pod1/abc";
  Put("sys/fs/cgroup/cpuset" + path + "/cpuset.cpus", "0\n");
  Put("sys/fs/cgroup/cpu" + path + "/cpu.stat", "nr_periods 4\nnr_throttled 1\nthrottled_time 9\n");
  Put("sys/fs/cgroup/cpuacct" + path + "/cpuacct.usage", "1234\n");
  Put("sys/fs/cgroup/memory" + path + "/memory.usage_in_bytes", "4096\n");
  Put("sys/fs/cgroup/memory" + path + "/memory.oom_control", "oom_kill 1\n");
  Put("sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes", "9223372036854771712\n");
  Put("sys/fs/cgroup/memory" + path + "/memory.numa_stat",
      "anon=1 N0=1\nfile=0 N0=0\nhierarchical_anon=2 N0=2\nhierarchical_file=1 N0=1\n");
  UsageReader reader(root_.path(), in_hand_);
  UsageCounters counters = reader.Read({Subject("abc")});
  const ContainerCounters& container = counters.containers.at("abc");
  EXPECT_FALSE(counters.unified);
  EXPECT_EQ(container.cpu.usage_ns, 1234U);
  EXPECT_EQ(container.cpu.periods, 4U);
  EXPECT_EQ(container.memory_bytes, 4096U);
  EXPECT_EQ(container.events.oom_kills, 1U);
  EXPECT_EQ(container.memory_limit, std::nullopt) << "no limit on v1";
  EXPECT_THAT(container.memory_by_node, ElementsAre(Pair(0, 3 * ::sysconf(_SC_PAGESIZE))));
  EXPECT_FALSE(container.cpu_pressure);
  EXPECT_THAT(counters.notes, ElementsAre(HasSubstr("have no cpu.pressure")));
  EXPECT_THAT(reader.Read({Subject("abc")}).notes, IsEmpty()) << "named once";

  Put("sys/fs/cgroup/unified" + path + "/cpu.pressure", "some avg10=1.00 avg60=2.00 total=1\n");
  UsageReader hybrid(root_.path(), in_hand_);
  counters = hybrid.Read({Subject("abc")});
  EXPECT_TRUE(counters.containers.at("abc").cpu_pressure);
  EXPECT_THAT(counters.notes, IsEmpty());
}

TEST_F(UsageReaderTest, ReadsKillsOfPodsAlsoWithoutAContainer) {
  PutMachine();
  PutUnified("abc");
  const std::string pod = "/sys/fs/cgroup/kubepods/pod1";
  UsageSubject subject = Subject("abc");
  subject.namespace_name = "ns";
  subject.pod = "web";
  UsageReader reader(root_.path(), in_hand_);
  UsageCounters counters = reader.Read({subject});
  ASSERT_TRUE(counters.pods.contains(pod));
  EXPECT_EQ(counters.pods.at(pod).name, "ns/web");
  EXPECT_EQ(counters.pods.at(pod).oom_kills, 3U);
  fs::remove_all(root_.path() + pod + "/abc");
  EXPECT_TRUE(reader.Read({}).pods.contains(pod)) << "its container may be created anew";
  fs::remove_all(root_.path() + pod);
  EXPECT_THAT(reader.Read({}).pods, IsEmpty());
}

TEST_F(UsageReaderTest, ACgroupWithContainersOfSeveralPodsIsNoPods) {
  PutMachine();
  PutUnified("abc");
  PutUnified("def");
  UsageSubject subject = Subject("abc");
  subject.pod = "web";
  UsageReader reader(root_.path(), in_hand_);
  EXPECT_THAT(reader.Read({subject, Subject("def")}).pods, IsEmpty());
}

TEST_F(UsageReaderTest, AContainerThatEndsInBetweenIsNoError) {
  PutMachine();
  PutUnified("abc");
  PutUnified("def");
  UsageReader reader(root_.path(), in_hand_);
  EXPECT_EQ(reader.Read({Subject("abc"), Subject("def")}).containers.size(), 2U);
  fs::remove_all(fs::path(root_.path()) / "sys/fs/cgroup/kubepods/pod1/def");
  const UsageCounters counters = reader.Read({Subject("abc"), Subject("def")});
  EXPECT_EQ(counters.containers.size(), 1U);
  EXPECT_THAT(counters.notes, IsEmpty());
  PutUnified("def");
  EXPECT_EQ(reader.Read({Subject("abc"), Subject("def")}).containers.size(), 2U)
      << "started again in place";
}

TEST_F(UsageReaderTest, ReadsNoFifosLinksAndLongFiles) {
  PutMachine();
  for (const char* const id : {"fifo", "link", "long", "good"})
    PutUnified(id);
  const fs::path pod = fs::path(root_.path()) / "sys/fs/cgroup/kubepods/pod1";
  fs::remove(pod / "fifo/memory.current");
  ASSERT_EQ(::mkfifo((pod / "fifo/memory.current").c_str(), 0600), 0);
  fs::remove(pod / "link/memory.current");
  fs::create_symlink(pod / "good/memory.current", pod / "link/memory.current");
  Put("sys/fs/cgroup/kubepods/pod1/long/memory.current",
      std::string(UsageFiles::kMostBytes + 1, '1'));
  UsageReader reader(root_.path(), in_hand_);
  const UsageCounters counters =
      reader.Read({Subject("fifo"), Subject("link"), Subject("long"), Subject("good")});
  EXPECT_EQ(counters.containers.size(), 4U) << "their other files are read";
  for (const char* const id : {"fifo", "link", "long"})
    EXPECT_FALSE(counters.containers.at(id).memory_bytes) << id;
  EXPECT_TRUE(counters.containers.at("good").memory_bytes);
  EXPECT_THAT(counters.notes,
              ElementsAre(HasSubstr("fifo/memory.current is not read: not a regular file"),
                          HasSubstr("link/memory.current is not read"),
                          HasSubstr("long/memory.current is not read: longer than")));
}

TEST_F(UsageReaderTest, TellsWhereItReads) {
  PutMachine();
  PutUnified("abc");
  UsageReader reader(root_.path(), in_hand_);
  reader.Read({Subject("abc")});
  EXPECT_EQ(in_hand_->Get(), root_.path() + "/sys/fs/resctrl") << "the last directory";
  fs::create_directories(root_.File("sys/fs/resctrl/mon_data/mon_L3_00"));
  reader.Read({Subject("abc")});
  EXPECT_THAT(in_hand_->Get(), HasSubstr("mon_L3_00/mbm_total_bytes"));
}

TEST_F(UsageReaderTest, ManyDeadCgroupsCostLittle) {
  PutMachine();
  PutUnified("abc");
  const fs::path pod = fs::path(root_.path()) / "sys/fs/cgroup/kubepods/pod1";
  for (int i = 0; i < 10'000; ++i)
    fs::create_directory(pod / fmt::format("dead{}", i));
  std::vector<UsageSubject> subjects = {Subject("abc")};
  for (int i = 0; i < 100; ++i)
    subjects.push_back(Subject(fmt::format("gone{}", i)));
  UsageReader reader(root_.path(), in_hand_);
  const std::chrono::nanoseconds begun = ThreadCpuTime();
  reader.Read(subjects);
  const std::chrono::nanoseconds first = ThreadCpuTime() - begun;
  constexpr int kSamples = 31;
  for (int i = 0; i < kSamples; ++i)
    reader.Read(subjects);
  const std::chrono::nanoseconds later = ThreadCpuTime() - begun - first;
  // It searches again after 1, 2, 4, 8 and 16 samples.
  EXPECT_LT(later, first * (kSamples / 2));
}

// A large file, so only where a CPU of a container's own is busy with them.
TEST_F(UsageReaderTest, ReadsInterruptsWhileTheyPressOnExclusiveCpus) {
  PutMachine();
  PutUnified("abc");
  Put("proc/interrupts", "  CPU0 CPU1\n 24: 7 5 MSI nvme0q1\n");
  const auto put_cpus = [this](int irq0, int irq1, int idle) {
    Put("proc/stat", fmt::format("cpu0 0 0 0 {} 0 {} 0 0 0 0\ncpu1 0 0 0 {} 0 {} 0 0 0 0\n", idle,
                                 irq0, idle, irq1));
  };
  UsageSubject subject = Subject("abc");
  subject.exclusive = subject.cpus = {1};
  UsageReader reader(root_.path(), in_hand_);
  put_cpus(0, 0, 0);
  EXPECT_THAT(reader.Read({subject}).interrupts, IsEmpty());
  put_cpus(50, 1, 100);
  EXPECT_THAT(reader.Read({subject}).interrupts, IsEmpty()) << "CPU 0 is no container's own";
  put_cpus(100, 20, 200);
  EXPECT_THAT(reader.Read({subject}).interrupts,
              ElementsAre(Pair(1, ElementsAre(Pair("24 (nvme0q1)", 5)))));
  put_cpus(150, 20, 300);
  EXPECT_THAT(reader.Read({subject}).interrupts, IsEmpty());
  fs::remove(fs::path(root_.path()) / "proc/interrupts");
  put_cpus(150, 90, 400);
  const UsageCounters counters = reader.Read({subject});
  EXPECT_THAT(counters.interrupts, IsEmpty());
  EXPECT_THAT(counters.notes, IsEmpty()) << "a container's /proc need not have it";
}

// Groups of the same name elsewhere do not belong to the container.
TEST_F(UsageReaderTest, ACgroupTreeOfAnotherManagerIsLeftAlone) {
  PutMachine();
  PutUnified("abc");
  const fs::path root = fs::path(root_.path()) / "sys/fs/cgroup";
  for (const char* const other : {"machine.slice/abc", "lxc/pod1/abc", "user.slice/kubepods/abc"})
    fs::create_directories(root / other);
  Put("sys/fs/cgroup/lxc/pod1/abc/cpu.stat", "usage_usec 999\n");
  UsageReader reader(root_.path(), in_hand_);
  EXPECT_EQ(reader.Read({Subject("abc")}).containers.at("abc").cpu.usage_ns, 1'000'000U);
  // The tree of a kubelet with another root: none of its groups is taken for the container's.
  const UsageCounters counters = Reader().Read({{.id = "abc", .cgroup_parent = "/other/pod1"}});
  EXPECT_THAT(counters.containers, IsEmpty());
}

// A daemon in a cgroup namespace of its own, which sees the mount from its own group on: it needs
// the host's by -host-root, and says so.
TEST_F(UsageReaderTest, AMountWithoutThePodsIsNamed) {
  PutMachine();
  Put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  Put("sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
  const UsageCounters counters = Reader().Read({Subject("abc")});
  EXPECT_THAT(counters.containers, IsEmpty());
  EXPECT_THAT(counters.notes, ElementsAre(HasSubstr("no cgroup of a container is found in")));
}

// The container ends, another one gets its files, or the whole tree vanishes during a read.
TEST_F(UsageReaderTest, FilesThatVanishOneByOneAreNoError) {
  PutMachine();
  PutUnified("abc");
  const fs::path directory = fs::path(root_.path()) / "sys/fs/cgroup/kubepods/pod1/abc";
  UsageReader reader(root_.path(), in_hand_);
  for (const char* const file :
       {"cpu.pressure", "memory.pressure", "memory.numa_stat", "memory.events", "memory.current"}) {
    fs::remove(directory / file);
    EXPECT_EQ(reader.Read({Subject("abc")}).containers.size(), 1U) << file;
  }
  fs::remove(directory / "cpu.stat");
  EXPECT_THAT(reader.Read({Subject("abc")}).containers, IsEmpty());
  fs::remove_all(fs::path(root_.path()) / "sys");
  EXPECT_THAT(reader.Read({Subject("abc")}).containers, IsEmpty());
}

TEST_F(UsageReaderTest, ReadsResctrlGroupsThatExist) {
  PutMachine();
  EXPECT_THAT(Reader().Read({}).monitors, IsEmpty());
  for (const char* const group : {"", "/mon_groups/web", "/gold", "/gold/mon_groups/db"}) {
    for (const char* const domain : {"mon_L3_00", "mon_L3_01"}) {
      const std::string path = fmt::format("sys/fs/resctrl{}/mon_data/{}", group, domain);
      Put(path + "/llc_occupancy", "100\n");
      Put(path + "/mbm_total_bytes", "Unavailable\n");
    }
  }
  Put("sys/fs/resctrl/info/L3_MON/num_rmids", "8\n");
  const auto monitors = Reader().Read({}).monitors;
  EXPECT_EQ(monitors.size(), 4U);
  EXPECT_EQ(monitors.at("gold/mon_groups/db").llc_bytes, 200U);
  EXPECT_EQ(monitors.at("/").memory_traffic_bytes, std::nullopt);
}

TEST_F(UsageReaderTest, ReadsHundredsOfResctrlGroupsAndTellsOfMore) {
  PutMachine();
  const std::string root = root_.path() + "/sys/fs/resctrl/";
  for (const char* const directory : {"mon_data", "mon_groups", "zz/mon_data", "zz/mon_groups"})
    fs::create_directories(root + directory);
  for (const char* const file : {"cpus", "cpus_list", "mode", "schemata", "size", "tasks"})
    Put(fmt::format("sys/fs/resctrl/{}", file), "\n");
  // Names of one group serve for many groups.
  const auto make = [&root](const std::string& group) {
    fs::create_directory_symlink(root + "zz", root + group);
  };
  make("zz/mon_groups/pod");
  for (int group = 0; group < 70; ++group) {
    make(fmt::format("class{:04}", group));
    make(fmt::format("mon_groups/pod{:04}", group));
  }
  UsageCounters counters = Reader().Read({});
  EXPECT_EQ(counters.monitors.size(), 1U + 70 + 2 * 71);
  EXPECT_TRUE(counters.monitors.contains("zz/mon_groups/pod"));
  EXPECT_THAT(counters.notes, IsEmpty());
  for (int group = 70; group < 1030; ++group)
    make(fmt::format("mon_groups/pod{:04}", group));
  counters = Reader().Read({});
  EXPECT_EQ(counters.monitors.size(), 1024U);
  EXPECT_TRUE(counters.monitors.contains("mon_groups/pod1022"));
  EXPECT_FALSE(counters.monitors.contains("mon_groups/pod1023"));
  EXPECT_THAT(counters.notes, ElementsAre(HasSubstr("more than 1024 groups of resctrl")));
}

// Otherwise the part that is back in the next sample is taken for traffic since this one.
TEST_F(UsageReaderTest, ASumThatLacksADomainIsNotKnown) {
  PutMachine();
  for (const char* const domain : {"mon_L3_00", "mon_L3_01", "mon_PERF_PKG_00"})
    Put(fmt::format("sys/fs/resctrl/mon_data/{}/mbm_total_bytes", domain), "100\n");
  EXPECT_EQ(Reader().Read({}).monitors.at("/").memory_traffic_bytes, 200U);
  Put("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "Unavailable\n");
  EXPECT_EQ(Reader().Read({}).monitors.at("/").memory_traffic_bytes, std::nullopt);
}

TEST_F(UsageReaderTest, AMachineWithoutAnyOfItIsNoError) {
  const UsageCounters counters = Reader().Read({});
  EXPECT_THAT(counters.cpus, IsEmpty());
  EXPECT_THAT(counters.nodes, IsEmpty());
  EXPECT_THAT(counters.notes, IsEmpty());
  EXPECT_THAT(Reader().Read({Subject("abc")}).notes,
              ElementsAre(HasSubstr("no cgroup of a container is found")));
  EXPECT_THAT(Reader().Read({{.id = "../x", .cgroup_parent = "/.."}}).containers, IsEmpty());
}

class UsageFilesTest : public testing::Test {
 protected:
  const TempDir dir_;
  UsageFiles files_{std::make_shared<FileInHand>()};
};

TEST_F(UsageFilesTest, AbsentFilesAreNoError) {
  dir_.Put("file", "7\n");
  EXPECT_THAT(files_.Read(dir_.File("file")), Optional(std::string_view("7\n")));
  EXPECT_FALSE(files_.Read(dir_.File("none")));
  EXPECT_FALSE(files_.Read(dir_.File("file/below")));
  EXPECT_EQ(files_.files(), 1U);
  EXPECT_THAT(files_.TakeErrors(), IsEmpty());
}

// The read of /proc/self/mem at 0 fails with EIO, as reads of a cgroup's files may do.
TEST_F(UsageFilesTest, AReadThatFailsIsNamedAndTheNextOneIsNot) {
  EXPECT_FALSE(files_.Read("/proc/self/mem"));
  EXPECT_THAT(files_.TakeErrors(),
              ElementsAre(HasSubstr("/proc/self/mem is not read: Input/output error")));
  dir_.Put("file", "7\n");
  EXPECT_THAT(files_.Read(dir_.File("file")), Optional(std::string_view("7\n")));
  EXPECT_THAT(files_.TakeErrors(), IsEmpty());
}

TEST_F(UsageFilesTest, ErrorsBetweenTwoSamplesAreBounded) {
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(files_.Read("/proc/self/mem"));
  EXPECT_THAT(files_.TakeErrors(), SizeIs(8));
}

TEST_F(UsageFilesTest, LongFilesAreLeftOutOrCutOff) {
  dir_.Put("long", std::string(UsageFiles::kMostBytes + 1, 'x'));
  EXPECT_FALSE(files_.Read(dir_.File("long")));
  EXPECT_THAT(files_.TakeErrors(), ElementsAre(HasSubstr("longer than")));
  EXPECT_THAT(files_.Read(dir_.File("long"), UsageFiles::TooLong::kCutOff),
              Optional(SizeIs(UsageFiles::kMostBytes)));
  EXPECT_THAT(files_.TakeErrors(), IsEmpty());
}

}  // namespace
}  // namespace resmgr
