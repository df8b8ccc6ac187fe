// SPDX-License-Identifier: Apache-2.0
// The use of containers, from a fake tree of the kernel's files to the output of cri-resmgr-ctl.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "test/integration/control_fixture.h"
#include "test/support/cri_client/specs.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Readers never see a part of it.
void Write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file.string() + ".new") << text;
  fs::rename(file.string() + ".new", file);
}

class UsageTest : public ControlTest {
 protected:
  UsageTest() {
    Put("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    PutCpu(0);
    Put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 9 kB\nNode 0 MemFree: 5 kB\n");
  }
  std::vector<std::string> Root() const { return {"-host-root", Path("root")}; }
  void Put(const std::string& name, const std::string& text) const {
    Write(fs::path(Path("root")) / name, text);
  }
  void PutCpu(int user) const {
    std::string text;
    for (int cpu = 0; cpu < kCpus; ++cpu)
      text += fmt::format("cpu{} {} 0 0 {} 0 0 0 0 0 0\n", cpu, user, user);
    Put("proc/stat", text);
  }
  // Samples each second from now on, with more keys of the section.
  void SampleOften(const std::string& more = "") const {
    EXPECT_EQ(Set("policy: {Active: static, ReservedResources: {CPU: 1}}\nusage: {Interval: 1s" +
                  more + "}\n"),
              0);
  }
  // Waits until the metrics have the line.
  bool Count(const std::string& line, milliseconds patience = kWaitPatience) const {
    return Eventually([&] { return Counts().find(line) != std::string::npos; }, patience);
  }
  void PutContainer(const cri::PodSandboxConfig& pod, const std::string& id) const {
    const std::string directory = "sys/fs/cgroup" + pod.linux().cgroup_parent() + "/" + id;
    Put(directory + "/cpu.stat", "usage_usec 1000\nnr_periods 0\nnr_throttled 0\n");
    Put(directory + "/cpu.pressure", "some avg10=1.50 avg60=2.50 avg300=0.00 total=1\n");
    Put(directory + "/memory.current", "8192\n");
    Put(directory + "/memory.numa_stat", "anon N0=4096\nfile N0=1024\n");
  }
};

TEST_F(UsageTest, TopAndCpusTellWhatTheKernelCounts) {
  StartRuntime();
  StartDaemon(StaticFlags(Root()));
  CriClient client = Relayed();
  const cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  const Running running = Run(client, pod, MakeGuaranteedContainer("main", 2));
  PutContainer(pod, running.container);
  const Json list = Ctl({"top", "-o", "json"}).json();
  ASSERT_EQ(list.size(), 1U) << list;
  const Json& container = list[0];
  EXPECT_EQ(container.size(), 15U) << "DESIGN 7.3";
  EXPECT_EQ(container["namespace"], "default");
  EXPECT_EQ(container["pod"], "g");
  EXPECT_EQ(container["container"], "main");
  EXPECT_EQ(container["id"], running.container);
  EXPECT_EQ(container["granted"], 2.0);
  EXPECT_EQ(container["cpuUsed"], 0.0);
  EXPECT_EQ(container["throttledPercent"], 0.0);
  EXPECT_EQ(container["cpuPressure10"], 1.5);
  EXPECT_EQ(container["cpuPressure60"], 2.5);
  EXPECT_EQ(container["memoryBytes"], 8192);
  EXPECT_EQ(container["memoryByNode"], Json({{"0", 5120}}));
  EXPECT_TRUE(container["since"].is_string());
  const CpuSet own = *CpuSet::Parse(container["cpus"].get<std::string>());
  EXPECT_EQ(own, CpusAtRuntime(running.container));

  EXPECT_THAT(Ctl({"top", "-sort-by", "memory"}).out,
              AllOf(HasSubstr("NAMESPACE  POD  CONTAINER"), HasSubstr("  8 KiB")));
  EXPECT_EQ(Ctl({"top", "-n", "other", "-o", "json"}).json(), Json::array());
  EXPECT_THAT(Ctl({"top", "nodes"}).out, HasSubstr("BY CONTAINERS"));
  EXPECT_EQ(Ctl({"top", "nodes", "-o", "json"}).json()[0]["memoryUsed"], 5120)
      << "containers have more than what is not free: they were read later";
  EXPECT_THAT(Ctl({"top", "pods"}).err, HasSubstr("\"pods\" is not one of nodes, cpus"));

  const Json cpus = Ctl({"cpus", "-o", "json"}).json();
  ASSERT_EQ(cpus.size(), static_cast<size_t>(kCpus));
  EXPECT_EQ(Ctl({"top", "cpus", "-o", "json"}).json(), cpus);
  for (const Json& cpu : cpus) {
    const bool exclusive = own.Contains(cpu["id"]);
    EXPECT_EQ(cpu["containers"], exclusive ? Json::array({"default/g/main"}) : Json::array());
    EXPECT_EQ(cpu["state"], exclusive ? "exclusive" : cpu["id"] == 0 ? "reserved" : "shared");
  }
  EXPECT_EQ(Ctl({"cpus", "1,3", "-o", "json"}).json().size(), 2U);
  EXPECT_EQ(Ctl({"cpus", "99"}).exit_code, 1);
  EXPECT_EQ(Ctl({"cpus", "x"}).exit_code, 1);
}

TEST_F(UsageTest, MetricsHavePoolsAlwaysAndContainersWhereTheConfigurationSaysSo) {
  StartWithMetrics(Root());
  CriClient client = Relayed();
  const cri::PodSandboxConfig pod = MakeBestEffortPod("s");
  PutContainer(pod, Run(client, pod, MakeBestEffortContainer("main")).container);
  SampleOften();
  // A scrape may come between two metrics of one sample.
  std::string counts;
  ASSERT_TRUE(Eventually([&] {
    counts = Counts();
    return counts.find("cri_resmgr_pool_memory_used_bytes{node=\"0\",pool=\"shared\"} 5120") !=
               std::string::npos &&
           counts.find("cri_resmgr_pool_cpu_pressure_ratio{pool=\"shared\"} 0.025") !=
               std::string::npos;
  })) << counts;
  EXPECT_THAT(counts, Not(HasSubstr("cri_resmgr_container_cpu_used{")));
  SampleOften(", PerContainerMetrics: true");
  EXPECT_TRUE(
      Count("cri_resmgr_container_cpu_used{container=\"main\",namespace=\"default\",pod=\"s\"} 0"))
      << Counts();
}

// Processes are killed, first in a container, then with one that is started anew.
TEST_F(UsageTest, KilledProcessesAreToldInEveryPlace) {
  StartWithMetrics(Root());
  CriClient client = Relayed();
  const cri::PodSandboxConfig pod = MakeBestEffortPod("s");
  const Running running = Run(client, pod, MakeBestEffortContainer("main"));
  PutContainer(pod, running.container);
  const std::string pods = "sys/fs/cgroup" + pod.linux().cgroup_parent();
  const std::string directory = pods + "/" + running.container;
  Put(pods + "/memory.events", "high 0\noom 0\noom_kill 0\n");
  Put(directory + "/memory.events", "high 3\noom 0\noom_kill 0\n");
  Put(directory + "/memory.max", "16384\n");
  SampleOften(", PerContainerMetrics: true");
  const std::string labels = "{container=\"main\",namespace=\"default\",pod=\"s\"} ";
  ASSERT_TRUE(Count("cri_resmgr_container_memory_high_total" + labels + "3")) << Counts();
  EXPECT_THAT(Counts(), HasSubstr("cri_resmgr_oom_kills_total 0"));

  Put(pods + "/memory.events", "high 0\noom 2\noom_kill 2\n");
  Put(directory + "/memory.events", "high 3\noom 2\noom_kill 2\n");
  ASSERT_TRUE(Count("cri_resmgr_container_oom_kills_total" + labels + "2")) << Counts();
  const std::string killed = "2 processes of default/s/main were killed for want of memory";
  ASSERT_TRUE(Eventually([&] {
    return Ctl({"status"}).out.find(killed + " in the last hour, by its limit of 16 KiB") !=
           std::string::npos;
  })) << Ctl({"status"}).out;
  EXPECT_EQ(Ctl({"status", "-check"}).exit_code, 1);
  EXPECT_THAT(Ctl({"status"}).out, HasSubstr("docs/troubleshooting.md#out-of-memory"));
  EXPECT_THAT(Ctl({"explain", "s"}).out, HasSubstr(killed));
  EXPECT_TRUE(Count("cri_resmgr_problems{kind=\"out-of-memory\"} 1")) << Counts();
  EXPECT_THAT(Ctl({"top", "-o", "wide"}).out, HasSubstr("OOM KILLS"));

  // The container ended with one, and its pod has another one of the same name.
  Put(pods + "/memory.events", "high 0\noom 3\noom_kill 3\n");
  ASSERT_TRUE(Count("cri_resmgr_problems{kind=\"out-of-memory\"} 2")) << Counts();
  EXPECT_THAT(Counts(), HasSubstr("cri_resmgr_oom_kills_total 3"));
  EXPECT_THAT(Ctl({"explain", "s"}).out,
              HasSubstr("1 process of default/s was killed for want of memory"));
}

// Takes half a minute: a quota has to throttle the container for so long.
TEST_F(UsageTest, AThrottledContainerIsAProblemAndItsEndTellsWhatItCameTo) {
  StartWithMetrics(Root());
  CriClient client = Relayed();
  const cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  const Running running = Run(client, pod, MakeGuaranteedContainer("main", 2));
  PutContainer(pod, running.container);
  SampleOften();
  // Counters that grow all the time, as the kernel's do.
  std::atomic<int> of_ten = 5;
  const std::jthread kernel([&](const std::stop_token& stop) {
    for (int periods = 0, throttled = 0; !stop.stop_requested();) {
      periods += 10;
      throttled += of_ten;
      Put("sys/fs/cgroup" + pod.linux().cgroup_parent() + "/" + running.container + "/cpu.stat",
          fmt::format("usage_usec 1000\nnr_periods {}\nnr_throttled {}\n", periods, throttled));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const std::string counted = "cri_resmgr_problems{kind=\"throttled\"} ";
  ASSERT_TRUE(Count(counted + "1", std::chrono::minutes(3))) << Counts();
  const std::string said = "its own quota throttles it in 50 % of the periods";
  EXPECT_THAT(Ctl({"status"}).out, HasSubstr(said));
  EXPECT_THAT(Ctl({"explain", "g"}).out, HasSubstr(said));
  EXPECT_EQ(Ctl({"status", "-o", "json"}).json().count("ended"), 0U);
  of_ten = 0;
  ASSERT_TRUE(Count(counted + "0", std::chrono::minutes(3))) << Counts();
  const Json ended = Ctl({"status", "-o", "json"}).json()["ended"];
  ASSERT_EQ(ended.size(), 1U) << ended;
  EXPECT_EQ(ended[0]["kind"], "throttled");
  // The figures are those of the last samples, of which one may have begun before the end.
  const double before = ended[0]["before"];
  EXPECT_GE(before, 5);
  EXPECT_LE(before, 50);
  EXPECT_LT(ended[0]["after"], 5);
  EXPECT_GT(ended[0]["ended"], ended[0]["since"]);
  EXPECT_THAT(
      Ctl({"status"}).out,
      ContainsRegex("default/g/main is throttled in [0-5] % of the periods, [0-9]+ % before"));
}

TEST_F(UsageTest, TopWatchesTheFigures) {
  StartRuntime();
  StartDaemon(StaticFlags(Root()));
  CriClient client = Relayed();
  const cri::PodSandboxConfig pod = MakeBestEffortPod("s");
  PutContainer(pod, Run(client, pod, MakeBestEffortContainer("main")).container);
  const auto watch = ChildProcess::Start(
      {Program("cri-resmgr-ctl"), "-socket", Path("admin.sock"), "top", "-w"}, Path("watched"));
  ASSERT_THAT(watch, IsOk());
  EXPECT_TRUE(FileHas("watched", "8 KiB")) << TextOf(Path("watched"));
  SampleOften();
  const Json list = Ctl({"top", "-o", "json"}).json();
  Put("sys/fs/cgroup" + pod.linux().cgroup_parent() + "/" + list[0]["id"].get<std::string>() +
          "/memory.current",
      "16384\n");
  EXPECT_TRUE(FileHas("watched", "16 KiB")) << TextOf(Path("watched"));
  ::kill((*watch)->pid(), SIGINT);
  EXPECT_TRUE((*watch)->Wait(kPatience).ok());
}

// The daemon waits for none of them, and reports each broken file once.
TEST_F(UsageTest, ATreeOfStrangeFilesIsNamedAndTheRestIsTold) {
  StartRuntime();
  StartDaemon(StaticFlags(Root()));
  CriClient client = Relayed();
  const cri::PodSandboxConfig pod = MakeBestEffortPod("s");
  const Running running = Run(client, pod, MakeBestEffortContainer("main"));
  PutContainer(pod, running.container);
  const fs::path directory =
      fs::path(Path("root")) / ("sys/fs/cgroup" + pod.linux().cgroup_parent()) / running.container;
  fs::remove(directory / "cpu.pressure");
  ASSERT_EQ(::mkfifo((directory / "cpu.pressure").c_str(), 0600), 0);
  fs::remove(directory / "memory.numa_stat");
  fs::create_directory(directory / "memory.numa_stat");
  const Json list = Ctl({"top", "-o", "json"}).json();
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_EQ(list[0]["memoryBytes"], 8192);
  EXPECT_TRUE(list[0]["cpuPressure10"].is_null());
  EXPECT_TRUE(Logged("cpu.pressure is not read: not a regular file"));
  EXPECT_TRUE(Logged("memory.numa_stat is not read: not a regular file"));
  EXPECT_EQ(Ctl({"status", "-o", "json"}).json()["problems"], Json::array());
}

// Containers move between shared pools by their use, from a fake tree of the kernel's files.

// A container's counters, which grow with the time.
struct Counted {
  fs::path directory{};
  double cpus = 0;
  double waits = 0;  // percent
  double usage_us = 0;
  double waited_us = 0;
};

// Two packages of four CPUs; four containers, of which those of one package are crowded.
class UseRebalanceTest : public ControlTest {
 protected:
  ~UseRebalanceTest() override { ticker_ = {}; }

  std::vector<std::string> TopologyAwareFlags() const {
    std::vector<std::string> flags = Flags(
        {"-policy", "topology-aware", "-reserved-resources", "CPU=1", "-host-root", Path("root")});
    *(std::ranges::find(flags, "-topology") + 1) = "synthetic:package:2 numa:1 core:4 pu:1";
    return flags;
  }
  void Start() {
    Write(fs::path(Path("root")) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    StartRuntime();
    StartDaemon(TopologyAwareFlags());
    ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
    ASSERT_EQ(Set("policy: {Active: topology-aware, ReservedResources: {CPU: 1}}\n"
                  "usage: {Interval: 1s}\n"),
              0);
    CriClient client = Relayed();
    for (const char* const name : {"a", "b", "c", "d"}) {
      const cri::PodSandboxConfig pod = MakeBurstablePod(name);
      const std::string id =
          Run(client, pod, MakeBurstableContainer("main", MilliCpu{300})).container;
      counted_[id].directory =
          fs::path(Path("root")) / ("sys/fs/cgroup" + pod.linux().cgroup_parent()) / id;
      before_[id] = CpusAtRuntime(id);
    }
    const CpuSet crowded = Crowded();
    for (auto& [id, counted] : counted_) {
      if (before_[id] != crowded) continue;
      counted.cpus = 1.9;
      counted.waits = 40;
    }
    ticker_ = std::jthread([this](const std::stop_token& stop) { Tick(stop); });
  }
  // The CPUs that most containers have.
  CpuSet Crowded() {
    std::map<std::string, int> counts;
    for (const auto& [id, cpus] : before_)
      ++counts[cpus.ToString()];
    return *CpuSet::Parse(
        std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; })->first);
  }
  void Tick(const std::stop_token& stop) {
    auto last = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      const auto now = std::chrono::steady_clock::now();
      const double us = std::chrono::duration<double, std::micro>(now - last).count();
      last = now;
      {
        const std::lock_guard lock(mutex_);
        for (auto& [id, counted] : counted_) {
          counted.usage_us += us * counted.cpus;
          counted.waited_us += us * counted.waits / 100;
          Write(counted.directory / "cpu.stat",
                fmt::format("usage_usec {:.0f}\nnr_periods 0\nnr_throttled 0\n", counted.usage_us));
          Write(counted.directory / "cpu.pressure",
                fmt::format("some avg10={0:.2f} avg60={0:.2f} avg300=0.00 total={1:.0f}\n",
                            counted.waits, counted.waited_us));
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void Use(const std::string& id, double cpus, double waits) {
    const std::lock_guard lock(mutex_);
    counted_[id].cpus = cpus;
    counted_[id].waits = waits;
  }
  Json Rebalance(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"rebalance", "-by", "use", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Ctl(arguments).json();
  }
  // Containers that have other CPUs than at the beginning.
  std::vector<std::string> Moved() {
    std::vector<std::string> moved;
    for (const auto& [id, cpus] : before_)
      if (CpusAtRuntime(id) != cpus) moved.push_back(id);
    return moved;
  }
  // The container that is moved, after a preview.
  std::string Apply() {
    EXPECT_TRUE(Eventually([this] {
      const Json preview = Rebalance({});
      return preview.is_object() && preview["byUse"]["moves"].size() == 1;
    })) << Ctl({"rebalance", "-by", "use"}).err;
    EXPECT_THAT(Moved(), SizeIs(0)) << "a preview";
    EXPECT_TRUE(Eventually([this] {
      return Ctl({"rebalance", "-by", "use", "-apply"}).exit_code == 0;
    })) << Ctl({"rebalance", "-by", "use", "-apply"}).err;
    EXPECT_TRUE(Eventually([this] { return Moved().size() == 1; }));
    return Moved().empty() ? "" : Moved()[0];
  }
  bool EndsAs(const std::string& state) {
    return Eventually([&] {
      const Json answer = Rebalance({});
      return answer.is_object() && answer["last"].is_object() && answer["last"]["state"] == state;
    });
  }

  std::mutex mutex_;
  std::map<std::string, Counted> counted_;
  std::map<std::string, CpuSet> before_;
  std::jthread ticker_;
};

TEST_F(UseRebalanceTest, MovesWhatIsCrowdedAndKeepsWhatHelpsOverAKill) {
  Start();
  const std::string moved = Apply();
  ASSERT_FALSE(moved.empty());
  EXPECT_FALSE(CpusAtRuntime(moved).Intersects(before_[moved]));
  for (const auto& [id, cpus] : before_)
    if (cpus == Crowded()) Use(id, 3, 0);
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("measured use: default/"));
  EXPECT_TRUE(EndsAs("kept")) << Ctl({"rebalance", "-by", "use"}).out;
  EXPECT_THAT(Ctl({"explain", moved}).out, HasSubstr("by use"));
  EXPECT_THAT(Ctl({"status"}).out, HasSubstr("CPUs were gained of"));
  EXPECT_THAT(Ctl({"rebalance", "-by", "use"}).out, HasSubstr("the last one, of"));
  EXPECT_TRUE(Logged("CPUs were gained of"));
  const CpuSet after = CpusAtRuntime(moved);
  ASSERT_EQ(::kill(pid(), SIGKILL), 0);
  daemon_.reset();
  StartDaemon(TopologyAwareFlags());
  ASSERT_TRUE(Logged("the runtime holds")) << daemon_->Log();
  EXPECT_EQ(CpusAtRuntime(moved), after);
  EXPECT_THAT(Moved(), SizeIs(1));
}

TEST_F(UseRebalanceTest, TakesBackWhatDoesNotHelp) {
  Start();
  const std::string moved = Apply();
  ASSERT_FALSE(moved.empty());
  for (const auto& [id, cpus] : before_)
    if (cpus == before_[moved] && id != moved) Use(id, 4, 50);
  EXPECT_TRUE(EndsAs("taken back")) << Ctl({"rebalance", "-by", "use"}).out;
  EXPECT_TRUE(Eventually([this] { return Moved().empty(); }));
  EXPECT_THAT(Ctl({"history"}).out, HasSubstr("taken back"));
}

TEST_F(UseRebalanceTest, OtherPoliciesHaveNothingToMove) {
  Write(fs::path(Path("root")) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  StartRuntime();
  StartDaemon(StaticFlags({"-host-root", Path("root")}));
  const Shown shown = Ctl({"rebalance", "-by", "use", "-apply"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("policy static has no shared pools between which"));
  EXPECT_THAT(Ctl({"rebalance", "-moves", "3"}).err, HasSubstr("needs -by use"));
  EXPECT_THAT(Ctl({"rebalance", "-by", "use", "-moves", "101"}).err, HasSubstr("from 0 to 100"));
}

}  // namespace
}  // namespace resmgr::test
