// SPDX-License-Identifier: Apache-2.0
// The daemon's figures of real containers' use equal those that their programs measure themselves.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node_fixture.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;

// Tells, between pieces of work, how long the machine is up and how much CPU time it has had.
constexpr const char* kBusy =
    "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; read u r </proc/uptime; "
    "times >/tmp/t; read a b </tmp/t; echo $u $a $b; done";

struct ToldTime {
  double uptime = 0;  // seconds
  double cpu = 0;     // seconds
};

// "0m1.230s"
double SecondsOf(const std::string& text) {
  const size_t minutes = text.find('m');
  return minutes == std::string::npos
             ? 0
             : 60 * std::stod(text.substr(0, minutes)) + std::stod(text.substr(minutes + 1));
}

double UptimeNow() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// "2024-05-06T07:08:09.123Z" as the machine's uptime then.
double UptimeAt(const std::string& rfc3339) {
  std::tm utc{};
  int millis = 0;
  EXPECT_EQ(std::sscanf(rfc3339.c_str(), "%d-%d-%dT%d:%d:%d.%dZ", &utc.tm_year, &utc.tm_mon,
                        &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &millis),
            7)
      << rfc3339;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  const double then = static_cast<double>(::timegm(&utc)) + millis / 1e3;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return UptimeNow() -
         (static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - then);
}

class UsageTest : public NodeTest {
 protected:
  void SetUp() override { Open({.config = "usage: {Interval: 5s}\n"}); }

  Json Top(const std::string& name) {
    const auto text = node().Ctl(Node::Words{"top"});
    EXPECT_TRUE(text.ok()) << Describe(text.status()) << node().RelayLog();
    if (!text.ok()) return {};
    for (const Json& container : Json::parse(*text))
      if (container.value("pod", "") == name) return container;
    return {};
  }
  // The figures of a whole interval, and its end: the next interval's beginning.
  std::pair<Json, std::string> WholeInterval(const std::string& name) {
    const Json first = Top(name);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    Json figures;
    while (std::chrono::steady_clock::now() < deadline) {
      const Json now = Top(name);
      const bool later = now.is_object() && now.value("since", "") != first.value("since", "");
      if (later && !figures.is_object()) {
        figures = now;
        continue;
      }
      if (later && now["since"] != figures["since"]) return {figures, now["since"]};
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    ADD_FAILURE() << "no two samples of " << name;
    return {};
  }
  // The times that the program printed, from the lines of its log: "TIME stdout F UPTIME USERs
  // SYSTEMs".
  std::vector<ToldTime> Told(const RunningPod& pod) {
    std::vector<ToldTime> told;
    std::ifstream log(node().PodLogs() / fmt::format("{}_0.log", pod.workload.name));
    for (std::string line; std::getline(log, line);) {
      std::istringstream words(line);
      std::string time;
      std::string stream;
      std::string tag;
      std::string user;
      std::string system;
      ToldTime measured;
      if (words >> time >> stream >> tag >> measured.uptime >> user >> system) {
        measured.cpu = SecondsOf(user) + SecondsOf(system);
        told.push_back(measured);
      }
    }
    return told;
  }
  // CPUs that the program used between these times, by its own measurement.
  static std::optional<double> Used(const std::vector<ToldTime>& told, double from, double to) {
    const auto at = [&told](double uptime) -> std::optional<double> {
      const auto after = std::ranges::lower_bound(told, uptime, {}, &ToldTime::uptime);
      if (after == told.begin() || after == told.end()) return std::nullopt;
      const ToldTime& before = *std::prev(after);
      const double span = after->uptime - before.uptime;
      const double part = span > 0 ? (uptime - before.uptime) / span : 1;
      return before.cpu + part * (after->cpu - before.cpu);
    };
    const auto first = at(from);
    const auto last = at(to);
    if (!first || !last) return std::nullopt;
    return (*last - *first) / (to - from);
  }
  void ExpectAsMeasured(const RunningPod& pod) {
    const auto [figures, until] = WholeInterval(pod.workload.name);
    ASSERT_TRUE(figures.is_object());
    // The program has printed the end by then, too.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const double from = UptimeAt(figures["since"]);
    const double to = UptimeAt(until);
    const auto used = Used(Told(pod), from, to);
    ASSERT_TRUE(used.has_value()) << figures;
    ASSERT_TRUE(figures["cpuUsed"].is_number()) << figures;
    const double told = figures["cpuUsed"];
    RecordProperty(pod.workload.name + "_program", std::to_string(*used));
    RecordProperty(pod.workload.name + "_daemon", std::to_string(told));
    EXPECT_NEAR(told, *used, std::max(0.03 * *used, 0.005)) << figures << " until " << until;
  }
  static Workload Running(Workload workload, const std::string& script) {
    workload.command = {"sh", "-c", script};
    return workload;
  }
};

TEST_F(UsageTest, ABusyLoop) {
  const RunningPod pod = Run(Running(Guaranteed("busy", 1), kBusy));
  ExpectAsMeasured(pod);
  const Json figures = Top("busy");
  EXPECT_EQ(figures["namespace"], "default");
  EXPECT_EQ(figures["id"], pod.container_id);
  EXPECT_EQ(figures["cpus"], CpusOf(pod));
  EXPECT_EQ(figures["granted"], 1.0);
  EXPECT_GT(figures["memoryBytes"], 0);
  // This policy decides no memory nodes, so none are remote.
  EXPECT_TRUE(figures["remotePercent"].is_null());
}

TEST_F(UsageTest, AThrottledOne) {
  Workload workload = Running(Burstable("throttled", MilliCpu{100}), kBusy);
  workload.cpu_limit = MilliCpu{100};
  const RunningPod pod = Run(workload);
  ExpectAsMeasured(pod);
  const Json figures = Top("throttled");
  ASSERT_TRUE(figures["throttledPercent"].is_number()) << figures;
  EXPECT_GT(figures["throttledPercent"], 20.0) << figures;
  EXPECT_LT(figures["cpuUsed"], 0.11) << figures;
}

TEST_F(UsageTest, OneThatWaits) {
  Run(BestEffort("waits"));
  const Json figures = WholeInterval("waits").first;
  ASSERT_TRUE(figures["cpuUsed"].is_number()) << figures;
  EXPECT_LT(figures["cpuUsed"], 0.01) << figures;
}

TEST_F(UsageTest, EachCpuIsNamedWithWhatItIsFor) {
  const RunningPod exclusive = Run(Running(Guaranteed("busy", 1), kBusy));
  const CpuSet own = CpuSetOf(exclusive);
  const auto text = Ok(node().Ctl(Node::Words{"cpus"}));
  const Json cpus = Json::parse(text);
  EXPECT_EQ(cpus.size(), TheMachine().cpus().size());
  for (const Json& cpu : cpus) {
    const int id = cpu["id"];
    if (own.Contains(id)) {
      EXPECT_EQ(cpu["state"], "exclusive");
      EXPECT_EQ(cpu["containers"], Json::array({"default/busy/busy"}));
    }
    if (id == 0) {
      EXPECT_EQ(cpu["state"], "reserved");
    }
    EXPECT_TRUE(cpu["busyPercent"].is_number()) << cpu;
  }
  EXPECT_EQ(Json::parse(*node().Ctl(Node::Words{"cpus", "0"})).size(), 1U);
  EXPECT_FALSE(node().Ctl(Node::Words{"cpus", "8000"}).ok());
}

}  // namespace
}  // namespace resmgr::test
