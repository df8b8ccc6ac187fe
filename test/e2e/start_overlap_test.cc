// SPDX-License-Identifier: Apache-2.0
// How long a running shared container may still use a CPU on which an exclusive one already runs,
// measured on containerd through each door. All containers are busy.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "test/e2e/front_doors.h"
#include "test/e2e/placement_watch.h"

namespace resmgr::test {
namespace {

using std::chrono::microseconds;

constexpr int kSharedPods = 2;

Workload Busy(Workload workload) {
  workload.command = {"sh", "-c", "while :; do :; done"};
  return workload;
}

// Figures of one start of an exclusive container.
struct Measured {
  // The time for which others could use its CPUs after it ran; zero if they had left before.
  microseconds overlap_at_least{0};
  microseconds overlap_at_most{0};
  // The time from the departure of the last of them until it ran; the largest value if none had to
  // leave.
  microseconds lead = microseconds::max();

  // Whether the looks tell if others had left before it ran. A busy machine lets no look fall in
  // between.
  bool IsKnown() const { return overlap_at_least.count() > 0 || overlap_at_most.count() == 0; }
};

class StartOverlapTest : public FrontDoorsTest {
 protected:
  CpuHistory::Reader Reader() {
    return [this](const std::string& id) { return containerd().AllowedCpus(id); };
  }

  // The CPU on which the container's process ran last.
  int LastCpu(const RunningPod& pod) {
    const std::string process = containerd().CgroupFile(pod.container_id, "cgroup.procs");
    std::string stat = TextOf("/proc/" + process.substr(0, process.find('\n')) + "/stat");
    // After the command, which is in parentheses, with "processor" as the 39th field of all.
    std::istringstream fields(stat.substr(stat.rfind(')') + 1));
    std::string field;
    for (int i = 3; i <= 39; ++i)
      fields >> field;
    return static_cast<int>(ParseUint(field).value_or(0));
  }

  // A pod without a container so far.
  RunningPod MakePod(const Workload& workload) {
    RunningPod pod = node().NewPod(workload);
    const auto made = node().client().RunPod(pod.config);
    EXPECT_TRUE(made.ok()) << Describe(made.status());
    pod.pod_id = made.value_or("");
    return pod;
  }

  // Creates the pod's container without starting it. Callable from any thread.
  void CreateContainer(RunningPod& pod) {
    const auto created = node().client().CreateContainer(pod.pod_id, pod.config,
                                                         Node::ContainerConfig(pod.workload));
    EXPECT_TRUE(created.ok()) << Describe(created.status());
    pod.container_id = created.value_or("");
  }

  // Creates the container of an exclusive pod; with NRI the others have left when the creation is
  // answered, and the history has seen that when this returns.
  RunningPod Create(const Workload& workload, const std::vector<RunningPod>& others,
                    const CpuHistory& history) {
    RunningPod pod = MakePod(workload);
    CreateContainer(pod);
    node().Watch(pod);
    if (!IsPlugin()) return pod;
    const CpuSet own = CpuSetToBe(pod);
    EXPECT_EQ(own.size(), 1);
    for (const RunningPod& other : others) {
      EXPECT_EQ(CpuSetOf(other), All() - own);
      EXPECT_FALSE(own.Contains(LastCpu(other)));
      const auto seen = [&] {
        const auto changes = history.ChangesOf(other.container_id);
        return !changes.empty() && changes.back().cpus == All() - own;
      };
      EXPECT_EQ(WaitUntil("it is seen to have left", kPatience, seen), OkStatus());
    }
    return pod;
  }

  // Creates and starts its container, at which this history alone looks. From any thread.
  void Launch(RunningPod& pod, CpuHistory& history) {
    CreateContainer(pod);
    history.Add(pod.container_id);
    const Status started = node().client().StartContainer(pod.container_id);
    EXPECT_TRUE(started.ok()) << Describe(started);
  }

  // Starts it and compares when it ran with when the others had left its CPUs.
  std::optional<Measured> Start(const RunningPod& pod, const std::vector<RunningPod>& others,
                                CpuHistory& history) {
    history.Add(pod.container_id);
    const Status started = node().client().StartContainer(pod.container_id);
    EXPECT_TRUE(started.ok()) << Describe(started);
    const CpuSet own = CpuSetOf(pod);
    return Compare(pod, others, own, history);
  }

  static bool SeenToRun(const RunningPod& pod, const CpuHistory& history) {
    const auto runs = [&] {
      const auto changes = history.ChangesOf(pod.container_id);
      return !changes.empty() && changes.back().cpus.has_value();
    };
    return WaitUntil("it is seen to run", kPatience, runs).ok();
  }

  static std::optional<Measured> Compare(const RunningPod& pod,
                                         const std::vector<RunningPod>& others, const CpuSet& own,
                                         const CpuHistory& history) {
    if (!SeenToRun(pod, history)) return std::nullopt;
    const CpuHistory::Change ran = history.ChangesOf(pod.container_id).back();
    Measured measured;
    for (const RunningPod& other : others) {
      const auto runs_beside = [&] {
        const auto changes = history.ChangesOf(other.container_id);
        return !changes.empty() && changes.back().cpus && !changes.back().cpus->Intersects(own);
      };
      if (!WaitUntil("the other runs beside it", kPatience, runs_beside).ok()) return std::nullopt;
      // A container that began to run elsewhere did not leave any CPU.
      const auto changes = history.ChangesOf(other.container_id);
      for (size_t i = 1; i < changes.size(); ++i) {
        const auto& before = changes[i - 1].cpus;
        if (before && before->Intersects(own)) Add(changes[i], ran, measured);
      }
    }
    return measured;
  }

  static void Add(const CpuHistory::Change& left, const CpuHistory::Change& ran,
                  Measured& measured) {
    const auto between = [](auto from, auto to) {
      return std::chrono::duration_cast<microseconds>(to - from);
    };
    measured.overlap_at_least =
        std::max(measured.overlap_at_least, between(ran.before, left.after));
    measured.overlap_at_most = std::max(measured.overlap_at_most, between(ran.after, left.before));
    measured.lead = std::min(measured.lead, between(left.before, ran.after));
  }

  static void Tell(const std::string& what, const std::vector<Measured>& all) {
    std::vector<microseconds> leads;
    microseconds least{0};
    microseconds most{0};
    int overlaps = 0;
    for (const Measured& each : all) {
      if (each.lead != microseconds::max()) leads.push_back(each.lead);
      least = std::max(least, each.overlap_at_least);
      most = std::max(most, each.overlap_at_most);
      if (each.overlap_at_most.count() > 0) ++overlaps;
    }
    ASSERT_FALSE(leads.empty());
    std::sort(leads.begin(), leads.end());
    const auto millis = [](microseconds time) { return static_cast<double>(time.count()) / 1000; };
    std::cout << fmt::format(
        "[ MEASURED ] {}: of {} starts {} overlap, the longest by {:.1f} to {:.1f} ms; in {} "
        "starts "
        "others had to leave, {:.1f} ms before (median), {:.1f} ms before (latest)\n",
        what, all.size(), overlaps, millis(least), millis(most), leads.size(),
        millis(leads[leads.size() / 2]), millis(leads.front()));
  }
};

TEST_P(StartOverlapTest, RunningContainersHaveLeftBeforeAnExclusiveOneRuns) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  constexpr size_t kStarts = 5;
  constexpr int kMostTries = 25;
  std::vector<RunningPod> others;
  others.reserve(kSharedPods);
  for (int i = 0; i < kSharedPods; ++i)
    others.push_back(Run(Busy(Burstable(fmt::format("shared{}", i), MilliCpu{300}))));
  std::vector<Measured> all;
  for (int tries = 0; all.size() < kStarts && tries < kMostTries && !HasFailure(); ++tries) {
    for (const RunningPod& other : others)
      ExpectOn(other, All());
    CpuHistory history(Reader());
    for (const RunningPod& other : others)
      history.Add(other.container_id);
    const RunningPod exclusive = Create(Busy(Guaranteed("exclusive", 1)), others, history);
    const auto measured = Start(exclusive, others, history);
    ASSERT_TRUE(measured.has_value());
    EXPECT_EQ(measured->overlap_at_least.count(), 0);
    if (measured->IsKnown()) all.push_back(*measured);
    Remove(exclusive);
  }
  EXPECT_EQ(all.size(), kStarts) << "starts whose order is known";
  Tell("others run", all);
}

// Containers that are being created or started at the same time leave its CPUs, too.
TEST_P(StartOverlapTest, ContainersThatStartAtTheSameTimeLeave) {
  OpenDoor();
  if (HasFatalFailure() || IsSkipped()) return;
  constexpr int kStarts = 7;
  constexpr std::chrono::milliseconds kStep{15};
  std::vector<Measured> all;
  for (int i = 0; i < kStarts && !HasFailure(); ++i) {
    std::vector<RunningPod> others;
    others.reserve(kSharedPods + 1);
    for (int each = 0; each < kSharedPods + 1; ++each)
      others.push_back(MakePod(Burstable(fmt::format("shared{}", each), MilliCpu{300})));
    RunningPod exclusive = MakePod(Guaranteed("exclusive", 1));
    CpuHistory history(Reader());
    // The exclusive one comes when the first of them is being created, or a little later each time;
    // at last when that one runs for sure, which on a slow machine it did not before.
    const auto launch = [&](RunningPod& pod, int step) {
      return std::thread([&, step] {
        std::this_thread::sleep_for(kStep * step);
        Launch(pod, history);
      });
    };
    const bool last = i == kStarts - 1;
    if (last) {
      Launch(others[0], history);
      ASSERT_TRUE(SeenToRun(others[0], history));
    }
    std::vector<std::thread> threads;
    for (int each = last ? 1 : 0; each < kSharedPods + 1; ++each)
      threads.push_back(launch(others[static_cast<size_t>(each)], last ? 0 : each));
    threads.push_back(launch(exclusive, last ? 0 : 1 + i));
    for (std::thread& thread : threads)
      thread.join();
    const CpuSet own = CpuSetOf(exclusive);
    EXPECT_EQ(own.size(), 1);
    const auto measured = Compare(exclusive, others, own, history);
    ASSERT_TRUE(measured.has_value());
    // The relay holds the start until others have left. NRI lets a plugin not hold it.
    if (!IsPlugin()) {
      EXPECT_LE(measured->overlap_at_least.count(), 0);
    }
    for (const RunningPod& other : others)
      ExpectOn(other, All() - own);
    all.push_back(*measured);
    Remove(exclusive);
    for (const RunningPod& other : others)
      Remove(other);
  }
  Tell("others start at the same time", all);
}

INSTANTIATE_TEST_SUITE_P(Containerd, StartOverlapTest,
                         ::testing::Values(Door::kRelay, Door::kNriPlugin), NameOf);

}  // namespace
}  // namespace resmgr::test
