// SPDX-License-Identifier: Apache-2.0
// On a machine with several memory nodes, the daemon's figures of use equal those of the programs
// in containers: memory on a node that was not decided, which is reported and vanishes when the
// advice is followed; CPU time, throttling, and the pressure of cgroup v2.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/machines/machine_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;

constexpr int kRemoteMiB = 128;

class MachineUsageTest : public MachineTest {
 protected:
  // An empty object where the sampler does not know it yet.
  Json Top(const RunningPod& pod) {
    for (const Json& container : Ctl({"top"}))
      if (container.value("id", "") == pod.container_id) return container;
    return Json::object();
  }
  // The last words of this kind in the container's log: "TIME stdout F has 134217728".
  std::optional<int64_t> Told(const RunningPod& pod, const std::string& word) {
    std::ifstream log(node().PodLogs() / fmt::format("{}_0.log", pod.workload.name));
    std::optional<int64_t> told;
    for (std::string line; std::getline(log, line);) {
      std::istringstream words(line);
      std::string time;
      std::string stream;
      std::string tag;
      std::string first;
      int64_t number = 0;
      if (words >> time >> stream >> tag >> first >> number && first == word) told = number;
    }
    return told;
  }
  // A shell that never rests, and tells the machine's seconds and its own nanoseconds after each so
  // many rounds: "ran 93.25 1250118604".
  static std::string LoopThatCounts(int rounds) {
    return fmt::format(
        "while :; do i=0; while [ $i -lt {} ]; do i=$((i+1)); done; read up idle < /proc/uptime; "
        "read ran rest < /proc/self/schedstat; echo ran $up $ran; done",
        rounds);
  }
  struct Window {
    double from = 0;  // in seconds since the machine's start
    double to = 0;
    std::map<std::string, Json> figures;  // by the container's name
  };
  // The figures of the next interval of the sampler that ends, from its first look to its second.
  Window WholeWindow(const std::vector<RunningPod>& pods) {
    Window window;
    std::string since;
    const Status whole = WaitUntil("a whole interval of the sampler", kPatience, [&] {
      std::map<std::string, Json> figures;
      for (const Json& container : Ctl({"top"}))
        for (const RunningPod& pod : pods)
          if (container.value("id", "") == pod.container_id && container["cpuUsed"].is_number())
            figures[pod.workload.name] = container;
      if (figures.size() != pods.size()) return false;
      const std::string now = figures.begin()->second["since"];
      if (!since.empty() && since != now) {
        window.from = Uptime(since);
        window.to = Uptime(now);
        return true;
      }
      since = now;
      window.figures = figures;
      return false;
    });
    EXPECT_TRUE(whole.ok()) << Describe(whole);
    return window;
  }
  // The time is written as "2026-01-02T03:04:05.678Z".
  static double Uptime(const std::string& time) {
    std::tm utc{};
    double part = 0;
    std::istringstream text(time);
    text >> std::get_time(&utc, "%Y-%m-%dT%H:%M:%S") >> part;
    const auto now = [](clockid_t clock) {
      timespec read{};
      ::clock_gettime(clock, &read);
      return static_cast<double>(read.tv_sec) + static_cast<double>(read.tv_nsec) / 1e9;
    };
    return static_cast<double>(::timegm(&utc)) + part - now(CLOCK_REALTIME) + now(CLOCK_BOOTTIME);
  }
  // CPUs that the container used in the window, by its own account.
  double RanIn(const RunningPod& pod, const Window& window) {
    std::vector<std::pair<double, double>> told;
    const Status later = WaitUntil("it tells what it ran", kPatience, [&] {
      told.clear();
      std::ifstream log(node().PodLogs() / fmt::format("{}_0.log", pod.workload.name));
      for (std::string time, stream, tag, word, line; std::getline(log, line);) {
        std::istringstream words(line);
        double at = 0;
        double ran = 0;
        if (words >> time >> stream >> tag >> word >> at >> ran && word == "ran")
          told.emplace_back(at, ran / 1e9);
      }
      return !told.empty() && told.back().first >= window.to;
    });
    EXPECT_TRUE(later.ok()) << Describe(later);
    if (!later.ok() || told.front().first > window.from) {
      ADD_FAILURE() << pod.workload.name << " tells nothing of the window's start";
      return 0;
    }
    const auto at = [&told](double time) {
      const auto next = std::ranges::lower_bound(told, time, {}, &std::pair<double, double>::first);
      if (next == told.begin()) return next->second;
      const auto last = std::prev(next);
      const double part = (time - last->first) / (next->first - last->first);
      return last->second + part * (next->second - last->second);
    };
    return (at(window.to) - at(window.from)) / (window.to - window.from);
  }
  std::string CgroupFileOf(const RunningPod& pod, const std::string& file) {
    return containerd().CgroupPath(pod.container_id, file);
  }
  // Lets its program use a node that was not decided for it, past the runtime, and tells it to
  // place its memory there; waits until it has.
  void PlaceOnNode(const RunningPod& pod, int remote) {
    PutIntoCgroup(pod, "cpuset.mems", TheMachine().allowed_nodes().ToString());
    const auto chosen = node().runtime().Exec(
        pod.container_id, {"sh", "-c", fmt::format("echo {} > /tmp/node", remote)});
    ASSERT_TRUE(chosen.ok()) << Describe(chosen.status());
    const Status placed = WaitUntil("it has the memory", kPatience, [&] {
      return Told(pod, "has").value_or(0) == kRemoteMiB * kMiB;
    });
    ASSERT_TRUE(placed.ok()) << Describe(placed);
  }
  void PutIntoCgroup(const RunningPod& pod, const std::string& file, const std::string& text) {
    std::ofstream stream(CgroupFileOf(pod, file));
    stream << text << std::flush;
    EXPECT_TRUE(stream.good()) << file << ": " << text;
  }
};

TEST_P(MachineUsageTest, RemoteMemoryIsFoundNamedAndBroughtHome) {
  ASSERT_NO_FATAL_FAILURE(OpenConfigured("usage: {Interval: 2s}\naudit: {Interval: disabled}\n"));
  const NodeSet all = TheMachine().allowed_nodes();
  ASSERT_GE(all.size(), 2);
  Workload workload = Guaranteed("remote", 1);
  workload.memory_limit = Bytes{2 * kRemoteMiB * kMiB};
  // The node without its CPU is known only when it runs.
  workload.command = {"sh", "-c",
                      fmt::format("read n < /tmp/node; while [ -z \"$n\" ]; do sleep 1; read n < "
                                  "/tmp/node; done; exec place-memory $n {}",
                                  kRemoteMiB)};
  const RunningPod pod = Run(workload);
  const NodeSet decided = NodeSet::Parse(MemsOf(pod)).value_or(NodeSet());
  const NodeSet others = all - decided;
  ASSERT_FALSE(decided.empty());
  ASSERT_FALSE(others.empty()) << MemsOf(pod);
  const int remote = others.First();
  ASSERT_NO_FATAL_FAILURE(PlaceOnNode(pod, remote));

  // The figures are those of the program, apart from the little memory of its shell and libraries.
  const double told = static_cast<double>(*Told(pod, "has"));
  Json figures;
  const Status seen = WaitUntil("it is seen", kPatience, [&] {
    figures = Top(pod);
    return figures.contains("memoryByNode") &&
           figures["memoryByNode"].value(std::to_string(remote), 0.0) >= told;
  });
  ASSERT_TRUE(seen.ok()) << figures;
  EXPECT_NEAR(figures["memoryByNode"][std::to_string(remote)].get<double>(), told, 0.03 * told);
  EXPECT_NEAR(figures["memoryBytes"].get<double>(), told, 0.03 * told + 4.0 * kMiB) << figures;
  EXPECT_GT(figures["remotePercent"].get<double>(), 90) << figures;

  Json problem;
  const Status named = WaitUntil("it is a problem", std::chrono::seconds(90), [&] {
    problem = ProblemOf(pod, "remote-memory");
    return !problem.empty();
  });
  ASSERT_TRUE(named.ok()) << Ctl({"status"});
  EXPECT_NE(problem["message"].get<std::string>().find(fmt::format("on node {}", remote)),
            std::string::npos)
      << problem;
  EXPECT_EQ(problem["objects"][1], fmt::format("node {}", remote));

  // Follows the advice: the pages move to the decided node. Cgroup v2 does that with the set.
  if (containerd().CgroupFile(pod.container_id, "memory.max").empty()) return;
  PutIntoCgroup(pod, "cpuset.mems", decided.ToString());
  const Status home = WaitUntil("its memory is home", std::chrono::seconds(60), [&] {
    figures = Top(pod);
    return figures.value("remotePercent", 100.0) < 5;
  });
  EXPECT_TRUE(home.ok()) << figures;
  EXPECT_EQ(Told(pod, "has"), 0) << "by the program's own look";
  EXPECT_TRUE(ProblemOf(pod, "remote-memory").empty());
}

TEST_P(MachineUsageTest, BusyThrottledAndWaitingContainersAreToldApart) {
  ASSERT_NO_FATAL_FAILURE(OpenConfigured("usage: {Interval: 5s}\n"));
  const auto run = [this](Workload workload, const std::string& script) {
    workload.command = {"sh", "-c", script};
    return Run(workload);
  };
  const RunningPod busy = run(Guaranteed("busy", 1), LoopThatCounts(10000));
  Workload limited = Burstable("throttled", MilliCpu{100});
  limited.cpu_limit = MilliCpu{200};
  const RunningPod throttled = run(limited, LoopThatCounts(1000));
  const RunningPod waits = run(BestEffort("waits"), "sleep 100000");

  const Window window = WholeWindow({busy, throttled, waits});
  ASSERT_GT(window.to, window.from);
  const double seconds = window.to - window.from;
  const double ran = RanIn(busy, window);
  EXPECT_NEAR(window.figures.at("busy").value("cpuUsed", 0.0), ran, 0.03 * ran);

  // A machine of many CPUs is emulated by one thread, which executes each of them for a tenth of a
  // second before the next one: what such a turn has used is counted at its end.
  constexpr double kTurn = 0.1;
  const Json& limits = window.figures.at("throttled");
  const double allowed = RanIn(throttled, window);
  EXPECT_NEAR(limits.value("cpuUsed", 0.0), allowed, 0.03 * allowed + kTurn / seconds) << limits;
  // The program knows for how long it stood, the kernel in how many periods it did.
  EXPECT_GE(limits.value("throttledPercent", 0.0), 100 * (1 - allowed - kTurn / seconds) - 3);

  EXPECT_LE(window.figures.at("waits").value("cpuUsed", 1.0), 0.02);
  EXPECT_EQ(window.figures.at("waits").value("throttledPercent", -1.0), 0);

  // The kernel's own text within its resolution, which is two seconds.
  const std::string text = containerd().CgroupFile(throttled.container_id, "cpu.pressure");
  if (text.empty()) return;
  const auto some10 = [](const std::string& pressure) {
    const size_t at = pressure.find("avg10=");
    return at == std::string::npos ? -1.0 : std::stod(pressure.substr(at + 6));
  };
  Json figures;
  const Status same = WaitUntil("the pressure is the kernel's", kPatience, [&] {
    figures = Top(throttled);
    if (!figures.contains("cpuPressure10") || !figures["cpuPressure10"].is_number()) return false;
    const double kernel = some10(containerd().CgroupFile(throttled.container_id, "cpu.pressure"));
    return kernel > 1 &&
           std::abs(figures["cpuPressure10"].get<double>() - kernel) <= std::max(5.0, 0.1 * kernel);
  });
  EXPECT_TRUE(same.ok()) << figures << text;
}

// Only this policy decides memory nodes.
INSTANTIATE_TEST_SUITE_P(Containerd, MachineUsageTest,
                         ::testing::Combine(::testing::Values(Door::kRelay),
                                            ::testing::Values("topology-aware")),
                         NameOfMachineCase);

}  // namespace
}  // namespace resmgr::test
