// SPDX-License-Identifier: Apache-2.0
// kill -9 of the relay at random moments while pods come, change and go on containerd, and its
// restart with the state that it had written.
//
// RESMGR_E2E_KILLS: how often, 3 times for each policy unless given. RESMGR_SEED: another life,
// though not its timing; printed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/base/parse.h"
#include "test/e2e/node_fixture.h"
#include "test/e2e/pod_life.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr int kPods = 4;
constexpr int kKills = 3;
// Hardly ever more than ten seconds. A start that never got to containerd is given up after two
// minutes.
constexpr seconds kSettling{150};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : ParseUint(text).value_or(otherwise);
}

class CrashTest : public NodeTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // By name of the container.
  using Cpus = std::map<std::string, CpuSet>;

  void SetUp() override {
    // CPU 0 is reserved, unless that would leave none of two to grant.
    const std::string reserved = TopologyAware() ? "" : "cpuset:0";
    Open({.policy = GetParam(), .reserved = reserved});
    seed_ = SeedOr(1);
    random_.seed(seed_);
    for (int i = 0; i < kPods; ++i)
      lives_.emplace_back(node(), fmt::format("pod{}", i), random_());
  }

  static bool TopologyAware() { return std::string_view(GetParam()) == "topology-aware"; }

  // All live until the relay is killed at some moment.
  void LiveUntilKilled() {
    std::atomic<bool> dying = false;
    std::vector<std::thread> threads;
    std::vector<Status> results(lives_.size());
    for (size_t i = 0; i < lives_.size(); ++i)
      threads.emplace_back([&, i] { results[i] = lives_[i].Live(dying); });
    std::this_thread::sleep_for(milliseconds(100 + random_() % 900));
    dying = true;
    node().relay().Kill();
    for (std::thread& thread : threads)
      thread.join();
    for (const Status& result : results)
      EXPECT_TRUE(result.ok()) << Describe(result);
  }

  // Calls whose client has died go on in the runtime for a while.
  void WaitUntilTheRuntimeRests() {
    std::string before;
    int same = 0;
    const Status rests = WaitUntil("containerd rests", seconds(60), [&] {
      for (PodLife& life : lives_)
        EXPECT_TRUE(life.LookWhatBecameOfIt().ok());
      std::string now;
      for (const PodLife& life : lives_) {
        now +=
            fmt::format("{} {} ", static_cast<int>(life.stage()),
                        life.stage() == PodLife::Stage::kCreated ? CpuSetToBe(life.pod()).ToString()
                                                                 : CpusOf(life.pod()));
      }
      same = now == before ? same + 1 : 0;
      before = now;
      std::this_thread::sleep_for(milliseconds(20));
      return same == 5;
    });
    EXPECT_TRUE(rests.ok()) << Describe(rests);
  }

  CpuSet CpusOfLife(const PodLife& life) const {
    const bool runs = life.stage() == PodLife::Stage::kRunning;
    if (!runs) return CpuSetToBe(life.pod());
    // None if the process has just ended.
    return CpuSet::Parse(CpusOf(life.pod())).value_or(CpuSet());
  }

  Cpus CpusOfAll() const {
    Cpus cpus;
    for (const PodLife& life : lives_) {
      if (life.HasContainer()) cpus[life.pod().workload.name] = CpusOfLife(life);
    }
    return cpus;
  }

  // The right places of all containers. An exclusive container's is its present one if that is one
  // CPU; one that has become exclusive by a resize gets its CPU when others have left.
  Cpus Due(const Cpus& now) const {
    CpuSet own;
    for (const PodLife& life : lives_) {
      if (life.HasContainer() && life.pod().workload.Exclusive()) {
        own |= now.at(life.pod().workload.name);
      }
    }
    Cpus due;
    for (const PodLife& life : lives_) {
      const Workload& workload = life.pod().workload;
      if (!life.HasContainer()) continue;
      const CpuSet& cpus = now.at(workload.name);
      const CpuSet alone = cpus.size() == 1 ? cpus : CpuSet();
      due[workload.name] = workload.Exclusive() ? alone : SharedCpus(workload.name, own);
    }
    return due;
  }

  // The CPUs of a shared container if these CPUs are exclusive ones of others.
  CpuSet SharedCpus(const std::string& name, const CpuSet& own) const {
    if (TopologyAware()) {
      const auto pool = pools_.find(name);
      return (pool == pools_.end() ? All() : pool->second) - own;
    }
    if (std::string_view(GetParam()) == "static") return All() - own;
    const CpuSet shared = Unreserved() - own;
    return shared.empty() ? CpuSet{0} : shared;
  }

  static CpuSet SetIn(const nlohmann::json& entry, const char* key) {
    return CpuSet::Parse(entry.value(key, "")).value_or(CpuSet());
  }

  // The daemon's answer: the CPUs of each container, and of its pool.
  Cpus Ask() {
    std::map<std::string, CpuSet> pools;
    for (const nlohmann::json& pool : Ctl({"pools"}))
      pools[pool.value("name", "")] = SetIn(pool, "cpus");
    Cpus told;
    pools_.clear();
    for (const nlohmann::json& container : Ctl({"containers"})) {
      if (container.value("state", "") == "exited") continue;
      const std::string name = container.value("name", "");
      told[name] = SetIn(container, "cpus");
      if (const auto pool = pools.find(container.value("pool", "")); pool != pools.end()) {
        pools_[name] = pool->second;
      }
    }
    return told;
  }

  void ExpectInvariants(const Cpus& now) {
    CpuSet own;
    for (const PodLife& life : lives_) {
      const Workload& workload = life.pod().workload;
      if (!life.HasContainer()) continue;
      const CpuSet& cpus = now.at(workload.name);
      EXPECT_TRUE(cpus.IsSubsetOf(All())) << workload.name << " on " << cpus.ToString();
      if (!workload.Exclusive()) continue;
      EXPECT_EQ(cpus.size(), 1) << workload.name << " on " << cpus.ToString();
      EXPECT_TRUE(TopologyAware() || !cpus.Contains(0)) << workload.name << " on a reserved CPU";
      EXPECT_FALSE(cpus.Intersects(own)) << workload.name << " on " << cpus.ToString();
      own |= cpus;
    }
  }

  bool AnyUnclear() const {
    return std::any_of(lives_.begin(), lives_.end(),
                       [](const PodLife& life) { return life.unclear(); });
  }

  // The containers and their stages.
  std::map<std::string, PodLife::Stage> Stages() const {
    std::map<std::string, PodLife::Stage> stages;
    for (const PodLife& life : lives_) {
      if (life.HasContainer()) stages[life.pod().workload.name] = life.stage();
    }
    return stages;
  }

  // Waits until all containers are at their right places, which are the daemon's.
  void WaitUntilAllAreInPlace() {
    Cpus now;
    Cpus told;
    const Status settled = WaitUntil("all are where they belong", kSettling, [&] {
      // A start or a stop that lost its client may end only now.
      for (PodLife& life : lives_)
        EXPECT_TRUE(life.LookWhatBecameOfIt().ok());
      now = CpusOfAll();
      told = Ask();
      return now == Due(now) && now == told;
    });
    EXPECT_TRUE(settled.ok());
    EXPECT_EQ(now, Due(now));
    EXPECT_EQ(now, told);
    ExpectInvariants(now);
  }

  // The relay starts anew. A container at its right place stays there without any update; updates
  // under way are finished. Only an update that was under way, whose outcome this relay does not
  // know, is sent again.
  void RestartAndCompare() {
    const Cpus before = CpusOfAll();
    const bool unclear = AnyUnclear();
    std::map<std::string, size_t> updates;
    for (const PodLife& life : lives_) {
      if (life.HasContainer()) {
        updates[life.pod().workload.name] = containerd().Updates(life.pod().container_id);
      }
    }
    const std::map<std::string, PodLife::Stage> stages = Stages();
    const size_t logged = node().WholeRelayLog().size();
    ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
    for (PodLife& life : lives_) {
      if (!life.unclear()) continue;
      const Status finished = life.FinishResize();
      EXPECT_TRUE(finished.ok()) << Describe(finished);
    }
    WaitUntilAllAreInPlace();
    const Cpus after = CpusOfAll();
    for (PodLife& life : lives_)
      life.Settled();
    // Containers with new neighbours may have to move.
    if (unclear || Stages() != stages) return;
    const Cpus due_before = Due(before);
    const std::string log = node().WholeRelayLog().substr(logged);
    for (const PodLife& life : lives_) {
      const std::string& name = life.pod().workload.name;
      if (!life.HasContainer() || before.at(name) != due_before.at(name)) continue;
      ++compared_;
      EXPECT_EQ(after.at(name), before.at(name)) << name << " was moved";
      if (log.find(fmt::format("/{}: an update was under way", name)) != log.npos) continue;
      EXPECT_EQ(containerd().Updates(life.pod().container_id), updates.at(name))
          << name << " was updated";
    }
  }

  // containerd may leave the process of a start that lost its client, and then refuses for ever to
  // remove the container, until it is started anew itself.
  Status End(PodLife& life) {
    Status ended = life.End();
    if (ended.ok() || Message(ended).find("cannot delete running task") == std::string_view::npos) {
      return ended;
    }
    node().containerd().Kill();
    RESMGR_RETURN_IF_ERROR(node().RestartContainerd());
    return life.End();
  }

  void ExpectNothingIsLeft() {
    EXPECT_THAT(Ctl({"containers"}), IsEmpty());
    // All CPUs that can be exclusive are available at once.
    const int most = TopologyAware() ? All().size() - 1 : Unreserved().size();
    const RunningPod all = Run(Guaranteed("all", most));
    EXPECT_EQ(CpuSetOf(all).size(), most);
    EXPECT_TRUE(TopologyAware() || CpuSetOf(all) == Unreserved()) << CpusOf(all);
    Remove(all);
  }

  uint64_t seed_ = 0;
  std::mt19937_64 random_;
  std::deque<PodLife> lives_;
  Cpus pools_;  // CPUs of the pool of each container, where its policy has pools
  int compared_ = 0;
};

TEST_P(CrashTest, AKilledRelayComesBackToWhatItLeft) {
  SCOPED_TRACE(Repeat(seed_));
  const uint64_t kills = FromEnvironment("RESMGR_E2E_KILLS", kKills);
  for (uint64_t kill = 0; kill < kills; ++kill) {
    SCOPED_TRACE(testing::Message() << "kill " << kill);
    LiveUntilKilled();
    WaitUntilTheRuntimeRests();
    RestartAndCompare();
    ASSERT_FALSE(HasFailure());
  }
  int calls = 0;
  for (PodLife& life : lives_) {
    const Status ended = End(life);
    EXPECT_TRUE(ended.ok()) << Describe(ended);
    calls += life.calls();
  }
  std::printf("RESMGR_SEED=%ju: %ju kills, %d calls, %d containers compared\n",
              static_cast<uintmax_t>(seed_), static_cast<uintmax_t>(kills), calls, compared_);
  ExpectNothingIsLeft();
  node().relay().Kill();
  ASSERT_TRUE(node().StartRelay().ok()) << node().RelayLog();
  ExpectNothingIsLeft();
}

std::string NameOfPolicy(const ::testing::TestParamInfo<CrashTest::ParamType>& policy) {
  std::string name(policy.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Containerd, CrashTest, ::testing::Values("topology-aware"), NameOfPolicy);
INSTANTIATE_TEST_SUITE_P(Long, CrashTest, ::testing::Values("static", "static-plus"), NameOfPolicy);

}  // namespace
}  // namespace resmgr::test
