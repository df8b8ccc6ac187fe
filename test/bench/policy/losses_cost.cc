// SPDX-License-Identifier: Apache-2.0
// The time that the daemon's loop is held up by a start without state under the policy balloons,
// which then searches for balloons that explain the CPUs of all containers: on 512 CPUs in cores of
// 2, 4 and 8 threads, under random types, with containers of which a part runs on other CPUs than
// any balloon would have, so that the search goes on until its work is used up.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/config/yaml_reader.h"
#include "policies/balloons/balloons_policy.h"
#include "test/bench/policy/node.h"

namespace resmgr::test {
namespace {

constexpr int kLostNodes = 60;  // of each machine
constexpr int kLostContainers = 400;

// Processor time of this thread.
double LossMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

class LostNode {
 public:
  LostNode(const Machine& machine, uint64_t seed) : machine_(machine), random_(seed) {
    MakeSection();
    policy_ = MakePolicy();
    for (int i = 0; i < kLostContainers; ++i)
      Create();
    Forget();
  }

  double Start() {
    policy_ = MakePolicy();
    const double start = LossMilliseconds();
    const StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
    const double took = LossMilliseconds() - start;
    if (!plan.ok()) Fail(plan.status());
    return took;
  }

 private:
  [[noreturn]] static void Fail(const Status& status) {
    std::fprintf(stderr, "%s\n", Describe(status).c_str());
    std::exit(1);
  }
  int Number(int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random_);
  }
  bool OneIn(int chance) { return Number(1, chance) == 1; }

  void MakeSection() {
    types_ = OneIn(2) ? Number(2, 8) : Number(16, 64);
    const bool follow = OneIn(4);
    const bool share = OneIn(2);
    const int sizes = Number(1, 8);
    section_ = "whenShort: overcommit\nballoonTypes:\n";
    for (int type = 0; type < types_; ++type) {
      section_ += fmt::format("- {{name: t{}, namespaces: [n{}]", type, type);
      if (OneIn(2)) section_ += fmt::format(", minCPUs: {}", Number(1, sizes));
      if (OneIn(3)) section_ += ", preferNewBalloons: true";
      if (OneIn(3)) section_ += ", hideHyperthreads: true";
      if (OneIn(4)) section_ += fmt::format(", minBalloons: {}", Number(1, 2));
      if (follow && OneIn(2)) section_ += ", followUse: {growAbove: 70}";
      if (share && OneIn(2)) {
        constexpr const char* kLevels[] = {"system", "package", "numa", "l3cache", "core"};
        section_ += fmt::format(", shareIdleCPUsInSame: {}", kLevels[Number(0, 4)]);
      }
      section_ += "}\n";
    }
  }
  std::unique_ptr<Policy> MakePolicy() {
    const StatusOr<ConfigNode> section = ParseYaml(section_, "bench");
    if (!section.ok()) Fail(section.status());
    StatusOr<std::unique_ptr<Policy>> made =
        BalloonsPolicy::Create({.machine = machine_,
                                .available = machine_.allowed(),
                                .reserved = CpuSet{machine_.allowed().First()},
                                .section = &*section});
    if (!made.ok()) Fail(made.status());
    return *std::move(made);
  }
  void Create() {
    const int64_t milli_cpu = OneIn(4) ? Number(1, 4) * 1000 : Number(1, 12) * 100;
    if (requested_ + milli_cpu > int64_t{900} * machine_.allowed().size()) return;
    const ContainerKey key = snapshot_.Add("main", QosClass::kBurstable, milli_cpu).key;
    snapshot_.PodOf(key).namespace_name = fmt::format("n{}", Number(0, types_ - 1));
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), nullptr);
    if (!plan.ok()) return snapshot_.Remove(key);
    snapshot_.Apply(*plan);
    snapshot_.At(key).state = ContainerState::kRunning;
    requested_ += milli_cpu;
    keys_.push_back(key);
  }
  // Only CPUs are known then; some containers run elsewhere.
  void Forget() {
    const int strays = OneIn(3) ? 0 : Number(1, 20);
    for (const ContainerKey key : keys_) {
      Placement known;
      known.cpus = snapshot_.At(key).placement.cpus;
      snapshot_.At(key).placement = known;
    }
    for (int i = 0; i < strays && !keys_.empty(); ++i) {
      CpuSet& cpus =
          *snapshot_.At(keys_[static_cast<size_t>(Number(0, static_cast<int>(keys_.size()) - 1))])
               .placement.cpus;
      const int cpu = Number(0, machine_.allowed().size() - 1);
      if (!OneIn(3) || cpus.size() < 2) {
        cpus.Add(cpu);
      } else {
        cpus.Remove(cpus.First());
      }
    }
  }

  const Machine& machine_;
  std::mt19937_64 random_;
  int types_ = 0;
  std::string section_;
  std::unique_ptr<Policy> policy_;
  BenchSnapshot snapshot_;
  std::vector<ContainerKey> keys_;
  int64_t requested_ = 0;
};

}  // namespace

void MeasureLosses() {
  std::printf("starts without state, %d nodes of up to %d containers: processor milliseconds\n",
              kLostNodes, kLostContainers);
  const std::pair<const char*, Shape> machines[] = {
      {"512 CPUs, 2 in a core", {.packages = 2, .nodes = 4, .l3s = 4, .cores = 32, .threads = 2}},
      {"512 CPUs, 4 in a core", {.packages = 2, .nodes = 4, .l3s = 4, .cores = 16, .threads = 4}},
      {"512 CPUs, 8 in a core", {.packages = 2, .nodes = 4, .l3s = 4, .cores = 8, .threads = 8}},
      {"64 CPUs, 2 in a core", {.packages = 2, .nodes = 2, .l3s = 2, .cores = 8, .threads = 2}}};
  for (const auto& [name, shape] : machines) {
    const Machine machine = BenchMachine(shape);
    std::vector<std::pair<double, uint64_t>> times;
    for (uint64_t seed = 1; seed <= kLostNodes; ++seed) {
      LostNode node(machine, seed);
      times.emplace_back(std::min(node.Start(), node.Start()), seed);
    }
    std::ranges::sort(times);
    std::printf("  %-22s p50 %7.1f   p90 %7.1f   longest %7.1f (seed %llu)\n", name,
                times[times.size() / 2].first, times[times.size() * 9 / 10].first,
                times.back().first, static_cast<unsigned long long>(times.back().second));
  }
}

}  // namespace resmgr::test
