// SPDX-License-Identifier: Apache-2.0
// Overheads of pods count from their creation to their removal.
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFit;
using test::S1Ht;
using test::TestNode;

constexpr Bytes k120MiB{120 << 20};
constexpr Bytes k160MiB{160 << 20};

LinuxResources OverheadAsStated(int64_t milli_cpu, Bytes memory) {
  LinuxResources stated;
  stated.cpu_shares = SharesFromMilliCpu({milli_cpu});
  stated.cpu_quota = QuotaFromMilliCpu({milli_cpu});
  stated.cpu_period = kDefaultCpuPeriod;
  stated.memory_limit = memory.value;
  return stated;
}

ResourceManager::Options WithConfiguredOverhead() {
  ResourceManager::Options options = TestNode::FastOptions();
  options.runtimes.classes["kata"].overhead = {.cpu = {500}, .memory = k160MiB};
  return options;
}

class OverheadsTest : public testing::Test {
 protected:
  TestNode node_{S1Ht(), FirstFit, WithConfiguredOverhead()};

  PodSandboxId RunPod(std::string_view name, const LinuxResources& overhead) {
    Pod pod;
    pod.id = PodSandboxId(std::string(name));
    pod.uid = PodUid(std::string(name));
    pod.name = name;
    pod.namespace_name = "ns";
    pod.runtime_handler = "kata";
    pod.overhead = overhead;
    node_.runtime.held.pods.push_back(pod);
    node_.manager().PodCreated(pod);
    return pod.id;
  }
  HeldOverheads Held() { return node_.manager().snapshot().Overheads(); }
  static HeldOverheads Promised(int64_t milli_cpu, Bytes memory) {
    return {.shown = {{milli_cpu}, memory}, .promised = {milli_cpu}};
  }
};

TEST_F(OverheadsTest, R02DebitedAtRunChangedByUpdateReleasedAtRemove) {
  EXPECT_EQ(Held(), HeldOverheads());
  const PodSandboxId first = RunPod("first", OverheadAsStated(250, k120MiB));
  EXPECT_EQ(Held(), Promised(250, k120MiB)) << "before it has containers";
  const PodSandboxId second = RunPod("second", OverheadAsStated(250, k120MiB));
  EXPECT_EQ(Held(), Promised(500, k120MiB + k120MiB));
  node_.manager().PodResourcesChanged(second, OverheadAsStated(1000, k160MiB), {});
  EXPECT_EQ(Held(), Promised(1250, k120MiB + k160MiB));
  node_.manager().PodRemoved(second);
  EXPECT_EQ(Held(), Promised(250, k120MiB));
  node_.manager().PodRemoved(first);
  EXPECT_EQ(Held(), HeldOverheads());
}

TEST_F(OverheadsTest, R02RebuiltAfterARestart) {
  RunPod("first", OverheadAsStated(250, k120MiB));
  RunPod("second", OverheadAsStated(1000, k160MiB));
  const HeldOverheads before = Held();
  node_.Restart();
  EXPECT_EQ(Held(), before);
  node_.Reconnect();
  EXPECT_EQ(Held(), before) << "counted once";
  node_.runtime.held.pods.clear();
  node_.Reconnect();
  EXPECT_EQ(Held(), HeldOverheads()) << "removed unseen";
}

// Runtimes need not include the values of an UpdatePodSandboxResources in their report of the
// sandbox.
TEST_F(OverheadsTest, R02WhatAnUpdateChangedHoldsAfterARestart) {
  test::CrashingFileSystem files(1);
  node_.KeepState(files);
  const PodSandboxId changed = RunPod("changed", OverheadAsStated(250, k120MiB));
  RunPod("as-created", OverheadAsStated(250, k120MiB));
  const PodSandboxId removed = RunPod("removed", OverheadAsStated(250, k120MiB));
  node_.manager().PodResourcesChanged(changed, OverheadAsStated(1000, k160MiB), {});
  node_.manager().PodResourcesChanged(removed, OverheadAsStated(1000, k160MiB), {});
  const HeldOverheads before = Promised(1250, k120MiB + k160MiB);
  node_.manager().PodRemoved(removed);
  node_.runtime.held.pods.pop_back();
  EXPECT_EQ(Held(), before);
  node_.Restart();
  EXPECT_EQ(Held(), before);
  node_.Reconnect();
  EXPECT_EQ(Held(), before) << "counted once";
  node_.Restart();
  EXPECT_EQ(Held(), before) << "and kept by the daemon that found it";
  // Another sandbox of that id, which runtimes never make, shows whether data of the removed one is
  // kept.
  RunPod("removed", OverheadAsStated(250, k120MiB));
  node_.Restart();
  EXPECT_EQ(Held(), Promised(1500, k120MiB + k120MiB + k160MiB));
  node_.runtime.held.pods.clear();
  node_.Restart();
  EXPECT_EQ(Held(), HeldOverheads());
  Pod again;
  again.id = changed;
  node_.runtime.held.pods.push_back(again);
  node_.Restart();
  EXPECT_EQ(Held(), HeldOverheads()) << "removed unseen";
}

// The scheduler gives the overhead of a finished pod to others, while its sandbox stays until the
// pod is deleted.
TEST_F(OverheadsTest, AStoppedSandboxIsShownUntilItsRemovalAndPromisesNothing) {
  const HeldOverheads shown_only = {.shown = {{250}, k120MiB}, .promised = {}};
  const PodSandboxId job = RunPod("job", OverheadAsStated(250, k120MiB));
  node_.manager().PodStopped(job);
  EXPECT_EQ(Held(), shown_only);
  node_.manager().PodResourcesChanged(job, {}, {});
  EXPECT_EQ(Held(), shown_only);
  node_.runtime.held.stopped_pods.insert(job);
  node_.Restart();
  EXPECT_EQ(Held(), shown_only) << "the list tells that it is not ready";
  node_.manager().PodRemoved(job);
  EXPECT_EQ(Held(), HeldOverheads());
}

TEST_F(OverheadsTest, ASandboxThatIsFoundStoppedPromisesNothing) {
  const PodSandboxId pod = RunPod("vm", OverheadAsStated(250, k120MiB));
  node_.runtime.held.stopped_pods.insert(pod);
  node_.Reconnect();
  EXPECT_EQ(Held().promised, MilliCpu());
  EXPECT_EQ(Held().shown.cpu, MilliCpu{250});
}

// The runtime's NRI does not tell which sandboxes are ready: one without containers is guessed to
// be stopped, until a container is created in it.
TEST_F(OverheadsTest, ASandboxThatIsListedReadyAgainPromises) {
  const PodSandboxId pod = RunPod("vm", OverheadAsStated(250, k120MiB));
  node_.runtime.held.stopped_pods.insert(pod);
  node_.Reconnect();
  EXPECT_EQ(Held().promised, MilliCpu());
  node_.runtime.held.stopped_pods.clear();
  node_.Reconnect();
  EXPECT_EQ(Held().promised, MilliCpu{250});
}

// The list began before the stop.
TEST_F(OverheadsTest, AnOlderListDoesNotUndoAStop) {
  const PodSandboxId pod = RunPod("vm", OverheadAsStated(250, k120MiB));
  node_.manager().RuntimeDisconnected();
  node_.manager().RuntimeConnected();
  node_.manager().PodStopped(pod);
  node_.runtime.AnswerList();
  EXPECT_EQ(Held().promised, MilliCpu());
}

TEST_F(OverheadsTest, TheConfiguredOverheadCountsWhereNoneIsStatedAndPromisesNothing) {
  const HeldOverheads configured = {.shown = {{500}, k160MiB}, .promised = {}};
  const PodSandboxId pod = RunPod("vm", {});
  EXPECT_EQ(Held(), configured);
  node_.manager().PodResourcesChanged(pod, OverheadAsStated(250, k120MiB), {});
  EXPECT_EQ(Held(), Promised(250, k120MiB)) << "what the kubelet states counts instead";
  node_.manager().PodRemoved(pod);
  EXPECT_EQ(Held(), HeldOverheads());
}

// The sum is kept by differences: it must equal the sum over the pods after any events.
TEST_F(OverheadsTest, RandomLivesOfPodsReturnToZero) {
  std::mt19937 random(5);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::vector<Pod>& held = node_.runtime.held.pods;
  std::set<PodSandboxId>& stopped = node_.runtime.held.stopped_pods;
  const auto amount = [&random] {
    return OverheadAsStated(static_cast<int64_t>(random() % 8) * 125, k120MiB);
  };
  for (int step = 0; step < 500; ++step) {
    const uint32_t what = held.empty() ? 0 : static_cast<uint32_t>(random() % 8);
    const size_t at = held.empty() ? 0 : random() % held.size();
    if (what < 3) {
      RunPod(fmt::format("pod{}", step), amount());
    } else if (what == 3) {
      const LinuxResources changed = amount();
      held[at].overhead = Merged(held[at].overhead, changed);
      node_.manager().PodResourcesChanged(held[at].id, changed, {});
    } else if (what == 4) {
      stopped.insert(held[at].id);
      node_.manager().PodStopped(held[at].id);
    } else if (what < 7) {
      node_.manager().PodRemoved(held[at].id);
      stopped.erase(held[at].id);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (random() % 2 == 0) {
      node_.Reconnect();
    } else {
      node_.Restart();
    }
    HeldOverheads expected;
    for (const Pod& pod : held) {
      const Overhead overhead = OverheadFrom(pod.overhead);
      expected +=
          {.shown = overhead, .promised = stopped.contains(pod.id) ? MilliCpu() : overhead.cpu};
    }
    ASSERT_EQ(Held(), expected) << "step " << step;
  }
  while (!held.empty()) {
    node_.manager().PodRemoved(held.back().id);
    held.pop_back();
  }
  EXPECT_EQ(Held(), HeldOverheads());
}

}  // namespace
}  // namespace resmgr
