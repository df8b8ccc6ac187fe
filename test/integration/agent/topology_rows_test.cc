// SPDX-License-Identifier: Apache-2.0
// Rows of the acceptance table of NodeResourceTopology on a node of two NUMA nodes with eight CPUs
// each, of which CPU 0 is reserved: the object that the API server has, and what the plugin's cache
// makes of it.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "test/integration/agent/agent_pair_fixture.h"
#include "test/support/scheduler_model/over_reserve_cache.h"
#include "test/support/scheduler_model/topology_samples.h"

namespace resmgr::test {
namespace {

constexpr char kNoPods[] = "pfp0v001ef46db3751d8e999";
constexpr char kPod0[] = "pfp0v00110399bf9eea6fbd3";  // of default/pod0 alone

PodView PodOf(int cpus) {
  return SamplePod(PodQos::kGuaranteed, {SampleApp({{"cpu", std::to_string(cpus)}})});
}

class TopologyRowsTest : public AgentPairTest {
 protected:
  TopologyRowsTest() : AgentPairTest(16) {}

  void StartPair(const std::string& configuration) {
    std::ofstream(Path("policy.yaml")) << configuration;
    StartAgent();
    StartDaemon(PairFlags({"-topology", "synthetic:numa:2 core:8 pu:1"}));
    ASSERT_TRUE(Eventually([this] { return api_.Topology(kNode).is_object(); })) << Logs();
  }
  std::string Logs() const { return AgentLog() + daemon_->Log(); }

  // "CAPACITY/ALLOCATABLE/AVAILABLE" CPUs of each zone, then the fingerprint.
  std::string Shown() const {
    const Json topology = api_.Topology(kNode);
    if (!topology.is_object()) return "nothing";
    std::string text;
    for (const Json& zone : topology["zones"]) {
      const Json& cpu = zone["resources"].at(0);
      text += fmt::format("{}:{}/{}/{} ", zone["name"].get<std::string>(),
                          cpu["capacity"].get<std::string>(), cpu["allocatable"].get<std::string>(),
                          cpu["available"].get<std::string>());
    }
    return text + topology["attributes"].at(3)["value"].get<std::string>();
  }
  bool Shows(const std::string& text) {
    return Eventually([&] { return Shown() == text; });
  }
  void End(CriClient& client, const Running& running) {
    EXPECT_THAT(client.StopContainer(running.container), IsOk());
    EXPECT_THAT(client.RemoveContainer(running.container), IsOk());
    EXPECT_THAT(client.StopPod(running.pod), IsOk());
    EXPECT_THAT(client.RemovePod(running.pod), IsOk());
  }
};

TEST_F(TopologyRowsTest, N1N2AnIdleNodeIsShownExactly) {
  StartPair("policy: {Active: static, ReservedResources: {CPU: 1}}\n");
  ASSERT_TRUE(Shows(fmt::format("node-0:8/7/7 node-1:8/8/8 {}", kNoPods))) << Shown() << Logs();
  const Json topology = api_.Topology(kNode);
  const auto attribute = [](const char* name, const std::string& value) {
    return Json{{"name", name}, {"value", value}};
  };
  EXPECT_EQ(
      topology["attributes"],
      Json::array({attribute("topologyManagerPolicy", "best-effort"),
                   attribute("topologyManagerScope", "container"),
                   attribute("topologyManagerMaxNUMANodes", "2"),
                   attribute("nodeTopologyPodsFingerprint", kNoPods),
                   attribute("nodeTopologyPodsFingerprintMethod", "with-exclusive-resources")}));
  // hwloc's distances of such a machine.
  const auto cost = [](const char* name, int value) {
    return Json{{"name", name}, {"value", value}};
  };
  EXPECT_EQ(topology["zones"].at(0)["costs"],
            Json::array({cost("node-0", 10), cost("node-1", 20)}));
  EXPECT_EQ(topology["zones"].at(1)["costs"],
            Json::array({cost("node-0", 20), cost("node-1", 10)}));
}

TEST_F(TopologyRowsTest, N3AGuaranteedPodIsInNumbersAndFingerprint) {
  StartPair("policy: {Active: static, ReservedResources: {CPU: 1}}\n");
  CriClient client = Relayed();
  // So pod0 gets its CPUs in node 1.
  const Running filler =
      Run(client, MakeGuaranteedPod("filler"), MakeGuaranteedContainer("main", 7));
  ASSERT_EQ(CpusAtRuntime(filler.container), CpuSet::Range(1, 7));
  const Running pod0 = Run(client, MakeGuaranteedPod("pod0"), MakeGuaranteedContainer("main", 3));
  EXPECT_TRUE(
      Shows(fmt::format("node-0:8/7/0 node-1:8/8/5 {}",
                        SchedulerFingerprint({{"default", "filler"}, {"default", "pod0"}}))))
      << Shown();
  End(client, filler);
  EXPECT_TRUE(Shows(fmt::format("node-0:8/7/7 node-1:8/8/5 {}", kPod0))) << Shown() << Logs();
  End(client, pod0);
  EXPECT_TRUE(Shows(fmt::format("node-0:8/7/7 node-1:8/8/8 {}", kNoPods))) << Shown() << Logs();
}

// Somebody deletes the object.
TEST_F(TopologyRowsTest, ADeletedObjectComesBackWithTheNextChangeOrAgent) {
  StartPair("policy: {Active: static, ReservedResources: {CPU: 1}}\n");
  const std::string idle = fmt::format("node-0:8/7/7 node-1:8/8/8 {}", kNoPods);
  ASSERT_TRUE(Shows(idle)) << Logs();
  const std::string objects(ApiServer::kTopologies);
  ASSERT_TRUE(api_.objects().Delete(objects, kNode));
  CriClient client = Relayed();
  const Running pod0 = Run(client, MakeGuaranteedPod("pod0"), MakeGuaranteedContainer("main", 3));
  EXPECT_TRUE(Shows(fmt::format("node-0:8/7/4 node-1:8/8/8 {}", kPod0))) << Shown() << Logs();
  ASSERT_TRUE(api_.objects().Delete(objects, kNode));
  StartAgent();
  EXPECT_TRUE(Shows(fmt::format("node-0:8/7/4 node-1:8/8/8 {}", kPod0))) << Shown() << Logs();
}

// A scheduler with the plugin's over-reserve cache, which is told all changes at once, and looks at
// dirty nodes again and again.
class SchedulerCacheTest : public TopologyRowsTest {
 protected:
  static constexpr char kRefuse[] =
      "policy: {Active: static, ReservedResources: {CPU: 1}, static: {Alignment: numa}}\n"
      "nrt: {Alignment: refuse}\n";
  static PodKey KeyOf(const std::string& pod) { return {"default", pod}; }

  OverReserveCache Cache() const { return {api_.Topology(kNode), ResourcesOf({{"cpu", "15"}})}; }
  // Looks once, at the object as it is now.
  void Look(OverReserveCache& cache) const {
    cache.ObjectSeen(api_.Topology(kNode));
    cache.Resync();
  }
  // The time until the cache has taken an object of its own pods, after what has just happened.
  milliseconds TimeToResync(OverReserveCache& cache) const {
    return TimeOf([&] {
      EXPECT_TRUE(Eventually([&] {
        Look(cache);
        return cache.fresh() && !cache.dirty();
      })) << "the object says "
          << cache.FingerprintOfObject() << ", the pods are " << cache.Fingerprint() << Logs();
      EXPECT_EQ(cache.FingerprintOfObject(), cache.Fingerprint());
    });
  }
  static bool Passes(OverReserveCache& cache, const PodView& pod) {
    return cache.Filter(pod).verdict == FilterVerdict::kPasses;
  }
};

// The best of five pods is judged; a single one may be slow because of other work.
TEST_F(SchedulerCacheTest, N11TheCacheIsInOrderASecondAfterAPodCameAndEnded) {
  StartPair(kRefuse);
  ASSERT_TRUE(Shows(fmt::format("node-0:8/7/7 node-1:8/8/8 {}", kNoPods))) << Shown() << Logs();
  OverReserveCache cache = Cache();
  CriClient client = Relayed();
  milliseconds come = seconds(60);
  milliseconds gone = seconds(60);
  for (int round = 0; round < 5 && (come > kAtOnce || gone > kAtOnce); ++round) {
    const std::string name = fmt::format("pod{}", round);
    LetWritesPass();
    ASSERT_TRUE(Passes(cache, PodOf(3)));
    cache.Reserve(KeyOf(name), PodOf(3));
    const Running running =
        Run(client, MakeGuaranteedPod(name), MakeGuaranteedContainer("main", 3));
    cache.PodSeen(KeyOf(name), PodOf(3), PodPhase::kRunning);
    EXPECT_FALSE(Passes(cache, PodOf(7))) << "the reservation is in each zone";
    come = std::min(come, TimeToResync(cache));
    EXPECT_TRUE(Passes(cache, PodOf(7))) << "the pod is in one zone alone; " << Shown();
    LetWritesPass();
    End(client, running);
    cache.PodGone(KeyOf(name));
    EXPECT_FALSE(Passes(cache, PodOf(9))) << "so it is looked at";
    gone = std::min(gone, TimeToResync(cache));
    EXPECT_EQ(cache.Topology().zones.at(0).available.at("cpu"), ExactQuantity(7));
    EXPECT_EQ(cache.Topology().zones.at(1).available.at("cpu"), ExactQuantity(8));
  }
  EXPECT_LE(come, kAtOnce) << Logs();
  EXPECT_LE(gone, kAtOnce) << Logs();
}

// A DaemonSet's pod makes the node stale for the scheduler, until the object has it.
TEST_F(SchedulerCacheTest, N11AStaleObjectIsNotTakenAndTheNextOneIs) {
  StartPair(kRefuse);
  ASSERT_TRUE(Shows(fmt::format("node-0:8/7/7 node-1:8/8/8 {}", kNoPods))) << Shown() << Logs();
  OverReserveCache cache = Cache();
  CriClient client = Relayed();
  agent_->Signal(SIGSTOP);
  const Running foreign =
      Run(client, MakeGuaranteedPod("foreign"), MakeGuaranteedContainer("main", 3));
  cache.PodSeen(KeyOf("foreign"), PodOf(3), PodPhase::kRunning);
  Look(cache);
  EXPECT_FALSE(cache.fresh());
  EXPECT_FALSE(Passes(cache, PodOf(1)));
  agent_->Signal(SIGCONT);
  TimeToResync(cache);
  EXPECT_TRUE(Passes(cache, PodOf(1)));
  agent_->Signal(SIGSTOP);
  End(client, foreign);
  cache.PodGone(KeyOf("foreign"));
  EXPECT_FALSE(Passes(cache, PodOf(9)));
  Look(cache);
  EXPECT_TRUE(cache.dirty()) << "the object is about a pod that has ended";
  agent_->Signal(SIGCONT);
  TimeToResync(cache);
}

}  // namespace
}  // namespace resmgr::test
