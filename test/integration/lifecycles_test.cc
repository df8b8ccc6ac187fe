// SPDX-License-Identifier: Apache-2.0
// Many pods that come, change and go beside each other: no shared container is ever on an exclusive
// CPU, the metrics add up with what was done, and nothing is left.
//
// RESMGR_LIFECYCLES: how many pods for each policy. RESMGR_SEED: other lives.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "test/integration/daemon_fixture.h"
#include "test/support/policy_text.h"
#include "test/support/programs/programs.h"
#include "test/support/scrape/scrape.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr size_t kThreads = 8;
// The growth allowed to a daemon that has served some thousand pods: pages of its heap that are in
// use by chance.
constexpr int64_t kGrowthKib = 3072;

uint64_t Lifecycles() {
  const char* const given = std::getenv("RESMGR_LIFECYCLES");
  const uint64_t few = SanitizedPrograms() ? 100 : 400;
  return given == nullptr ? few : ParseUint(given).value_or(few);
}

// Numbers of calls that a thread made, by the name of a metric with its labels.
using Counts = std::map<std::string, uint64_t>;

std::string CallsWithCode(std::string_view method, std::string_view code) {
  return fmt::format("{} {}", method, code);
}

class LifecyclesTest : public DaemonTest, public testing::WithParamInterface<const char*> {
 protected:
  LifecyclesTest() : DaemonTest(kCpus, false) {}

  void SetUp() override {
    StartRuntime();
    std::ofstream(Path("node.yaml")) << PolicyFile(GetParam());
    StartDaemon(Flags({"-config", Path("node.yaml"), "-metrics-address", "127.0.0.1:0"}));
    ASSERT_TRUE(Logged("metrics are served on port"));
    metrics_port_ = MetricsPort();
    ASSERT_TRUE(Eventually([this] { return Series("cri_resmgr_runtime_ready ") == 1; }));
  }

  // The value of the sample whose line begins so; -1 without one.
  int64_t Series(const std::string& beginning) {
    const std::string text = Scrape(metrics_port_);
    const size_t at = text.find("\n" + beginning);
    if (at == std::string::npos) return -1;
    const size_t value = text.find(' ', at + beginning.size());
    return static_cast<int64_t>(std::stod(text.substr(value + 1)));
  }

  // The sum of the samples whose line matches.
  static uint64_t Sum(const std::string& text, const std::string& pattern) {
    uint64_t sum = 0;
    const std::regex line("\n" + pattern + " ([0-9]+)");
    for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it)
      sum += std::stoull((*it)[1]);
    return sum;
  }

  int MetricsPort() {
    std::smatch port;
    const std::string log = daemon_->Log();
    if (!std::regex_search(log, port, std::regex("metrics are served on port ([0-9]+)"))) return 0;
    return std::stoi(port[1]);
  }

  // Runs `count` pods, by all threads together.
  void LiveAll(uint64_t count);

  static constexpr const char* kUpdatesOfOthers =
      "cri_resmgr_container_updates_total\\{result=\"(?:pushed|moot)\"\\}";

  // Notes a container that was started with `cpus` exclusive CPUs, and checks all running ones.
  void Look(const std::string& id, int cpus);
  // Notes that the container is about to end.
  void Forget(const std::string& id) {
    const std::lock_guard lock(mutex_);
    exclusive_.erase(id);
  }

  uint64_t Done(std::string_view method) const {
    const auto found = counts_.find(CallsWithCode(method, "OK"));
    return found == counts_.end() ? 0 : found->second;
  }

  // Compares all counts with those of the daemon and the runtime.
  void CompareMetrics();

  int metrics_port_ = 0;
  // Not to be used while threads run.
  Counts counts_;
  std::vector<std::string> violations_;

 private:
  class Life;

  // Guards the following members, counts and violations while threads run.
  std::mutex mutex_;
  std::set<std::string> exclusive_;  // ids of containers that run with CPUs of their own
};

// One pod after the other. Each call is counted.
class LifecyclesTest::Life {
 public:
  Life(LifecyclesTest& test, uint64_t seed) : test_(test), client_(test.Relayed()), random_(seed) {}

  void Live(uint64_t number) {
    const std::string name = fmt::format("pod-{}", number);
    const size_t kind = random_() % 5;
    const int cpus = kind == 0 ? 1 : kind == 1 ? 3 : 0;
    cri::PodSandboxConfig pod = MakeBestEffortPod(name);
    cri::ContainerConfig container = MakeBestEffortContainer("main");
    if (cpus > 0) {
      pod = MakeGuaranteedPod(name);
      container = MakeGuaranteedContainer("main", cpus);
    } else if (kind < 4) {
      pod = MakeBurstablePod(name);
      container = MakeBurstableContainer("main", {200});
    }
    const auto sandbox = client_.RunPod(pod);
    if (!Count("RunPodSandbox", sandbox.status())) return;
    RunContainer(*sandbox, pod, container, cpus);
    Count("StopPodSandbox", client_.StopPod(*sandbox));
    Count("RemovePodSandbox", client_.RemovePod(*sandbox));
  }

  const Counts& counts() const { return counts_; }

 private:
  // Refusals for want of room are as they should be.
  bool Count(std::string_view method, const Status& status) {
    const bool refused = status.code() == StatusCode::kResourceExhausted;
    ++counts_[CallsWithCode(method, refused ? "RESOURCE_EXHAUSTED" : "OK")];
    EXPECT_TRUE(status.ok() || refused) << method << ": " << Describe(status);
    return status.ok();
  }

  void RunContainer(const std::string& sandbox, const cri::PodSandboxConfig& pod,
                    const cri::ContainerConfig& container, int cpus) {
    const auto id = client_.CreateContainer(sandbox, pod, container);
    if (!Count("CreateContainer", id.status())) return;
    if (Count("StartContainer", client_.StartContainer(*id))) {
      test_.Look(*id, cpus);
      Resize(*id, container, cpus);
    }
    test_.Forget(*id);
    if (random_() % 2 == 0) Count("StopContainer", client_.StopContainer(*id));
    Count("RemoveContainer", client_.RemoveContainer(*id));
  }

  // Shares of a shared container, memory of an exclusive one.
  void Resize(const std::string& id, const cri::ContainerConfig& container, int cpus) {
    if (random_() % 2 == 0) return;
    cri::LinuxContainerResources resources = container.linux().resources();
    if (cpus > 0) {
      resources.set_memory_limit_in_bytes(256 << 20);
    } else {
      resources.set_cpu_shares(512);
    }
    Count("UpdateContainerResources", client_.UpdateContainer(id, resources));
    test_.Look(id, cpus);
  }

  LifecyclesTest& test_;
  CriClient client_;
  std::mt19937_64 random_;
  Counts counts_;
};

void LifecyclesTest::LiveAll(uint64_t count) {
  const uint64_t seed = SeedOr(1);
  std::atomic<uint64_t> next = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Life life(*this, seed * kThreads + i);
      for (uint64_t number = next++; number < count && !HasFailure(); number = next++)
        life.Live(number);
      const std::lock_guard lock(mutex_);
      for (const auto& [name, calls] : life.counts())
        counts_[name] += calls;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

void LifecyclesTest::Look(const std::string& id, int cpus) {
  const std::lock_guard lock(mutex_);
  // Starts do not wait for others to leave a balloon.
  const bool alone = cpus > 0 && std::string_view(GetParam()) != "balloons";
  if (alone) exclusive_.insert(id);
  std::map<std::string, CpuSet> running;
  runtime_.WithStore([&running](CriStore& store) {
    for (const auto& [other, container] : store.containers()) {
      if (container.state != cri::CONTAINER_RUNNING) continue;
      running[other] = CpuSet::Parse(container.resources.cpuset_cpus()).value_or(CpuSet());
    }
  });
  const CpuSet& own = running[id];
  if (cpus > 0 && own.size() != cpus)
    violations_.push_back(fmt::format("{} has {} in place of {} CPUs", id, own.ToString(), cpus));
  for (const auto& [other, others] : running) {
    if (others.empty()) violations_.push_back(other + " is not pinned");
    for (const std::string& owner : exclusive_) {
      if (other == owner || (others & running[owner]).empty()) continue;
      violations_.push_back(fmt::format("{} on {} meets {}, which has {} for itself", other,
                                        others.ToString(), owner, running[owner].ToString()));
    }
  }
}

void LifecyclesTest::CompareMetrics() {
  const std::string text = Scrape(metrics_port_);
  for (const auto& [name, calls] : counts_) {
    const size_t space = name.find(' ');
    const std::string method = name.substr(0, space);
    const std::string code = name.substr(space + 1);
    EXPECT_EQ(Sum(text, fmt::format("cri_resmgr_calls_total\\{{[^}}]*code=\"{}\"[^}}]*method=\"{}\""
                                    "[^}}]*\\}}",
                                    code, method)),
              calls)
        << name;
  }
  const uint64_t refused = counts_[CallsWithCode("CreateContainer", "RESOURCE_EXHAUSTED")];
  const uint64_t placed = Done("CreateContainer") + Done("UpdateContainerResources");
  EXPECT_EQ(Sum(text, "cri_resmgr_policy_decisions_total\\{result=\"ok\"\\}"), placed);
  EXPECT_EQ(Sum(text, "cri_resmgr_policy_decisions_total\\{result=\"refused\"\\}"), refused);
  EXPECT_EQ(Sum(text, "cri_resmgr_policy_refusals_total\\{reason=\"RESOURCE_EXHAUSTED\"\\}"),
            refused);
  EXPECT_EQ(Sum(text, "cri_resmgr_container_updates_total\\{result=\"failed\"\\}"), 0U);
  // Updates beyond those of clients are moves.
  EXPECT_EQ(Sum(text, kUpdatesOfOthers),
            runtime_.CallCount("UpdateContainerResources") - Done("UpdateContainerResources"));
  EXPECT_EQ(Sum(text, "cri_resmgr_overridden_cpusets_total"), 0U);
  for (const char* const gone :
       {"containers", "pods", "calls_in_flight", "cpus\\{class=\"exclusive\"\\}"})
    EXPECT_EQ(Sum(text, fmt::format("cri_resmgr_{}", gone)), 0U) << gone;
  fmt::print("{} pods placed, {} refused, {} updates of others\n", Done("CreateContainer"), refused,
             runtime_.CallCount("UpdateContainerResources") - Done("UpdateContainerResources"));
}

TEST_P(LifecyclesTest, LeaveNothingAndAddUp) {
  const uint64_t count = Lifecycles();
  LiveAll(count / 4);
  const int64_t early = ProcStatus("VmRSS:");
  const int files = OpenFiles();
  LiveAll(count - count / 4);
  const int64_t late = ProcStatus("VmRSS:");
  fmt::print("{} pods: {} KiB after a quarter of them, {} KiB after all\n", count, early, late);

  EXPECT_THAT(violations_, testing::IsEmpty());
  // Updates may still be under way, and some numbers are looked at now and then.
  EXPECT_TRUE(Eventually([this] {
    const std::string text = Scrape(metrics_port_);
    const auto is_zero = [&text](std::string_view name) {
      return text.find(fmt::format("\ncri_resmgr_{} 0\n", name)) != std::string::npos;
    };
    return is_zero("containers") && is_zero("pods") && is_zero("calls_in_flight") &&
           is_zero("cpus{class=\"exclusive\"}") &&
           Sum(text, kUpdatesOfOthers) ==
               runtime_.CallCount("UpdateContainerResources") - Done("UpdateContainerResources");
  }));
  CompareMetrics();
  // Connections of clients that have gone may be noticed later.
  EXPECT_TRUE(Eventually([&] { return OpenFiles() <= files; }));
  EXPECT_GT(Done("CreateContainer"), count / 2);
  EXPECT_GT(runtime_.CallCount("UpdateContainerResources"), Done("UpdateContainerResources"));
  if (SanitizedPrograms()) return;
  EXPECT_LT(late - early, kGrowthKib);
}

INSTANTIATE_TEST_SUITE_P(All, LifecyclesTest,
                         testing::Values("static", "static-plus", "topology-aware", "balloons"),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace resmgr::test
