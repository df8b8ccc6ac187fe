// SPDX-License-Identifier: Apache-2.0
// How long policies take to decide, on a full node: p50, p99 and the longest, in microseconds, by
// policy, machine and call; and the check of their plans. Then how long the brain takes for a
// re-sync. `decision-bench [decisions|resync]`, both when nothing is said; exits with 1 when a
// target is missed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/config/yaml_reader.h"
#include "pkg/log/log.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/registry.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNodeContainers = 1000;
constexpr int kExclusive = 200;
constexpr int kRounds = 40;
constexpr const char* kState = "/state";

struct Contender {
  PolicyFactory factory;
  double target = 0;  // microseconds
};

struct Times {
  std::vector<double> wall;
  std::vector<double> cpu;
};

double Microseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// The value at this part of sorted values.
double At(const std::vector<double>& values, double part) {
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

void Require(bool condition, std::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "re-sync: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

std::unique_ptr<Policy> Make(const PolicyFactory& factory, const Machine& machine) {
  StatusOr<std::unique_ptr<Policy>> policy =
      factory.create({.machine = machine,
                      .available = machine.allowed(),
                      .reserved = CpuSet{machine.allowed().First()}});
  Require(policy.ok(), "the policy cannot be made");
  return *std::move(policy);
}

// The remains of a full node: the runtime's containers and the state on the disk.
class Remains {
 public:
  Remains(const Machine& machine, const Contender& choice) : machine_(machine), choice_(choice) {
    TestNode node(machine, [&choice](const Machine& its) { return Make(choice.factory, its); });
    node.KeepState(disk_);
    for (int i = 0; i < kNodeContainers; ++i) {
      const bool exclusive = i < kExclusive;
      node.Run(fmt::format("container-of-pod-{}", i),
               exclusive ? QosClass::kGuaranteed : QosClass::kBurstable,
               exclusive ? 1000 * (1 + i % 3) : 100);
    }
    node.runtime.AnswerAll();
    node.FlushState();
    held_ = node.runtime.held;
  }

  // Starts a daemon, with or without the notes of the former one.
  void Restart(bool remembers, size_t updates, Times& times) {
    FakeRuntimeClient runtime;
    runtime.held = held_;
    EventLoop loop;
    std::unique_ptr<StateStore> state;
    if (remembers) {
      state = std::make_unique<StateStore>(disk_, kState, machine_.Fingerprint(),
                                           [](std::string_view) {});
    }
    ResourceManager manager(loop, machine_, Make(choice_.factory, machine_), runtime, state.get(),
                            {});
    Synchronize(manager, runtime, times);
    Require(runtime.updates.size() == updates, "updates that were not expected");
  }

  // Loses the connection, which comes back.
  void Reconnect(Times& times) {
    FakeRuntimeClient runtime;
    runtime.held = held_;
    EventLoop loop;
    ResourceManager manager(loop, machine_, Make(choice_.factory, machine_), runtime, nullptr, {});
    Times first;
    Synchronize(manager, runtime, first);
    manager.RuntimeDisconnected();
    runtime.DropAll();
    Synchronize(manager, runtime, times);
    Require(runtime.updates.empty(), "updates that were not expected");
  }

  // All shared containers have been on all CPUs until now.
  void Spread() {
    for (RuntimeContainer& container : held_.containers) {
      if (*container.resources.cpu_shares > 102) continue;
      container.resources.cpuset_cpus = machine_.allowed().ToString();
    }
  }

 private:
  static void Synchronize(ResourceManager& manager, FakeRuntimeClient& runtime, Times& times) {
    const double cpu = Microseconds(CLOCK_THREAD_CPUTIME_ID);
    const double wall = Microseconds(CLOCK_MONOTONIC);
    manager.RuntimeConnected();
    runtime.AnswerList();
    times.wall.push_back(Microseconds(CLOCK_MONOTONIC) - wall);
    times.cpu.push_back(Microseconds(CLOCK_THREAD_CPUTIME_ID) - cpu);
    int placed = 0;
    manager.snapshot().ForEachContainer([&placed](const Pod&, const Container& container) {
      placed += container.placement.cpus.has_value();
    });
    Require(manager.synchronizer().ready() && placed == kNodeContainers, "containers are missing");
  }

  const Machine& machine_;
  const Contender& choice_;
  CrashingFileSystem disk_{1};
  RuntimeInventory held_;
};

bool Print(const Contender& choice, std::string_view machine, std::string_view occasion,
           Times& times) {
  std::sort(times.wall.begin(), times.wall.end());
  std::sort(times.cpu.begin(), times.cpu.end());
  const bool good = At(times.cpu, 0.5) <= choice.target;
  fmt::print("{:24} {:22} {:23} {:7} {:9.1f} {:9.1f} {:9.1f} {:9.1f} {:7.0f}{}\n",
             choice.factory.name, machine, occasion, times.wall.size(), At(times.wall, 0.5),
             At(times.wall, 0.99), times.wall.back(), At(times.cpu, 0.5), choice.target,
             good ? "" : " MISSED");
  return good;
}

bool MeasureOn(std::string_view name, const Machine& machine, const Contender& choice) {
  Remains remains(machine, choice);
  Times noted;
  Times forgotten;
  Times reconnect;
  Times pushed;
  for (int round = 0; round < kRounds; ++round) {
    remains.Restart(true, 0, noted);
    remains.Restart(false, 0, forgotten);
    remains.Reconnect(reconnect);
  }
  remains.Spread();
  for (int round = 0; round < kRounds; ++round)
    remains.Restart(true, kNodeContainers - kExclusive, pushed);
  const bool good[] = {Print(choice, name, "restart", noted),
                       Print(choice, name, "restart without state", forgotten),
                       Print(choice, name, "reconnect", reconnect),
                       Print(choice, name, "restart, 800 updates", pushed)};
  return std::all_of(std::begin(good), std::end(good), [](bool each) { return each; });
}

// The time that the brain takes to take over 1000 containers, from the moment that the runtime has
// listed them to the last update that is sent: adoption, their saved state, the policy's plan and
// its check. Printed by policy, machine and occasion, in microseconds on the clock and of the
// processor, which a busy machine does not lengthen. False when the median of the latter is beyond
// its target. Ends the program if a result is wrong.
bool MeasureResync() {
  SetLogLevel(LogLevel::kError);
  const Contender choices[] = {{StaticPolicyFactory(), 50'000},
                               {StaticPlusPolicyFactory(), 50'000},
                               {TopologyAwarePolicyFactory(), 100'000}};
  const std::pair<std::string_view, Machine> machines[] = {
      {"512 CPUs, 8 nodes",
       MakeMachine({.packages = 2, .nodes = 4, .l3s = 4, .cores = 32, .threads = 2})},
      {"1024 CPUs, 64 nodes",
       MakeMachine({.packages = 8, .nodes = 8, .l3s = 2, .cores = 8, .threads = 2})},
  };
  fmt::print("\nre-sync of {} containers, {} of them exclusive; microseconds\n", kNodeContainers,
             kExclusive);
  fmt::print("{:24} {:22} {:23} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7}\n", "policy", "machine",
             "occasion", "number", "p50", "p99", "longest", "CPU p50", "target");
  bool good = true;
  for (const auto& [name, machine] : machines) {
    for (const Contender& choice : choices)
      good &= MeasureOn(name, machine, choice);
  }
  return good;
}

constexpr size_t kContainers = 500;
constexpr int kDecisions = 20'000;
constexpr size_t kReconciled = 1000;

struct Node {
  std::string name;
  Machine machine;
};

struct Choice {
  std::string_view name;
  PolicyFactory factory;
  std::string_view section;
};

template <typename T>
T OrDie(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", Describe(value.status()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

// A node with containers that come, are resized and go.
class Bench {
 public:
  Bench(const Node& node, const Choice& choice) : machine_(node.machine) {
    const ConfigNode section = OrDie(ParseYaml(choice.section, "bench"));
    policy_ = OrDie(choice.factory.create({.machine = machine_,
                                           .available = machine_.allowed(),
                                           .reserved = CpuSet{machine_.allowed().First()},
                                           .section = &section}));
    while (keys_.size() < kContainers)
      Create();
    times_.clear();
  }

  void Run() {
    for (int i = 0; i < kDecisions; ++i) {
      const int64_t what = Number(1, 10);
      if (what <= 2) Resize();
      if (what > 2 && keys_.size() >= kContainers) {
        Remove();
      } else if (what > 2) {
        Create();
      }
    }
  }

  // Takes over twice as many containers, of which only the CPUs are known, as after a restart.
  void Reconcile() {
    while (keys_.size() < kReconciled)
      CreateSmall();
    for (int i = 0; i < 20; ++i) {
      for (const ContainerKey key : keys_) {
        Placement known;
        known.cpus = snapshot_.At(key).placement.cpus;
        snapshot_.At(key).placement = known;
      }
      snapshot_.Apply(OrDie(Timed("reconcile", [&] { return policy_->Reconcile(snapshot_); })));
    }
  }

  void Print(const Node& node, const Choice& choice) {
    std::vector<double> all;
    for (const auto& [call, times] : times_) {
      const bool decision = !call.starts_with("reconcile") && !call.starts_with("check");
      if (decision) all.insert(all.end(), times.begin(), times.end());
    }
    PrintLine(node, choice, "all decisions", all);
    for (auto& [call, times] : times_)
      PrintLine(node, choice, call, times);
  }

 private:
  static void PrintLine(const Node& node, const Choice& choice, std::string_view call,
                        std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    const auto at = [&times](double part) {
      return times[static_cast<size_t>(part * static_cast<double>(times.size() - 1))];
    };
    fmt::print("{:24} {:22} {:23} {:7} {:9.1f} {:9.1f} {:9.1f}\n", choice.name, node.name, call,
               times.size(), at(0.5), at(0.99), times.back());
  }

  int64_t Number(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random_() % static_cast<uint64_t>(last - first + 1));
  }

  // Half of the containers share; the others have up to 8 CPUs, one in ten up to 64.
  int64_t SomeRequest() {
    if (Number(1, 2) == 1) return Number(10, 900);
    const int64_t cpus = Number(1, 10) == 1 ? Number(8, 64) : Number(1, 8);
    return cpus * 1000 + (Number(1, 4) == 1 ? 500 : 0);
  }

  template <typename Call>
  StatusOr<Plan> Timed(std::string_view name, const Call& call) {
    const Clock::time_point start = Clock::now();
    StatusOr<Plan> plan = call();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    const std::string_view what = !plan.ok()         ? "refused"
                                  : plan->size() > 1 ? "others change"
                                                     : "alone";
    times_[fmt::format("{} {}", name, what)].push_back(took.count());
    if (plan.ok() && name != "reconcile") Check(what, *plan);
    return plan;
  }

  // The check that the brain makes of each plan before it uses it.
  void Check(std::string_view what, const Plan& plan) {
    const Clock::time_point start = Clock::now();
    const Status status = CheckPlan(machine_, snapshot_, holders_, plan);
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", Describe(status).c_str());
      std::exit(1);
    }
    times_[fmt::format("check {}", what)].push_back(took.count());
    for (const PlacementChange& change : plan.changes) {
      if (!change.placement.exclusive.empty()) holders_.insert(change.key);
    }
  }

  void Create() {
    const QosClass qos = Number(1, 4) == 1 ? QosClass::kBurstable : QosClass::kGuaranteed;
    const ContainerKey key = snapshot_.Add("container-of-some-pod", qos, SomeRequest()).key;
    const StatusOr<Plan> plan = Timed("create", [&] {
      return policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), nullptr);
    });
    if (!plan.ok()) {
      snapshot_.Remove(key);
      // Removes a container if the node is full, as a scheduler that knows the node's size does.
      if (!keys_.empty() && keys_.size() < kContainers) CreateSmall();
      return;
    }
    snapshot_.Apply(*plan);
    keys_.push_back(key);
  }

  void CreateSmall() {
    const ContainerKey key = snapshot_.Add("small", QosClass::kBurstable, 100).key;
    const StatusOr<Plan> plan =
        policy_->Allocate(snapshot_, snapshot_.PodOf(key), snapshot_.At(key), nullptr);
    snapshot_.Apply(OrDie(plan));
    keys_.push_back(key);
  }

  void Remove() {
    const auto at = keys_.begin() + Number(0, std::ssize(keys_) - 1);
    const ContainerKey key = *at;
    keys_.erase(at);
    snapshot_.Remove(key);
    holders_.erase(key);
    snapshot_.Apply(OrDie(Timed("remove", [&] { return policy_->Release(snapshot_, key); })));
  }

  void Resize() {
    const ContainerKey key = keys_[static_cast<size_t>(Number(0, std::ssize(keys_) - 1))];
    MilliCpu& request = snapshot_.At(key).requirements.cpu_request;
    const MilliCpu before = std::exchange(request, MilliCpu{SomeRequest()});
    const StatusOr<Plan> plan = Timed("resize", [&] {
      return policy_->Update(snapshot_, snapshot_.PodOf(key), snapshot_.At(key));
    });
    if (plan.ok()) {
      snapshot_.Apply(*plan);
    } else {
      request = before;
    }
  }

  std::mt19937_64 random_{7};
  const Machine& machine_;
  std::unique_ptr<Policy> policy_;
  TestSnapshot snapshot_;
  ExclusiveHolders holders_;
  std::vector<ContainerKey> keys_;
  std::map<std::string, std::vector<double>> times_;
};

void MeasureDecisions() {
  const std::vector<Node> nodes = {
      {"512 CPUs, 8 nodes",
       MakeMachine({.packages = 2, .nodes = 4, .l3s = 4, .cores = 32, .threads = 2})},
      {"512 CPUs, 16 nodes",
       MakeMachine({.packages = 2, .nodes = 8, .l3s = 4, .cores = 16, .threads = 2})},
      {"1024 CPUs, 64 nodes",
       MakeMachine({.packages = 8, .nodes = 8, .l3s = 2, .cores = 8, .threads = 2})},
  };
  const std::vector<Choice> choices = {
      {"static", StaticPolicyFactory(), ""},
      {"static across-numa", StaticPolicyFactory(),
       "{Options: {distribute-cpus-across-numa: true}}"},
      {"static uncore", StaticPolicyFactory(),
       "{Options: {prefer-align-cpus-by-uncorecache: true}}"},
      {"static by-socket", StaticPolicyFactory(), "{Options: {align-by-socket: true}}"},
      {"static-plus", StaticPlusPolicyFactory(), ""},
      {"static-plus across-numa", StaticPlusPolicyFactory(),
       "{Options: {distribute-cpus-across-numa: true}}"},
  };
  fmt::print("{} containers, {} events; microseconds per decision; reconcile: {} containers\n",
             kContainers, kDecisions, kReconciled);
  fmt::print("{:24} {:22} {:23} {:>7} {:>9} {:>9} {:>9}\n", "policy", "machine", "call", "number",
             "p50", "p99", "longest");
  for (const Node& node : nodes) {
    for (const Choice& choice : choices) {
      Bench bench(node, choice);
      bench.Run();
      bench.Reconcile();
      bench.Print(node, choice);
    }
  }
}

}  // namespace
}  // namespace resmgr::test

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!part.empty() && part != "decisions" && part != "resync")) {
    std::fprintf(stderr, "usage: %s [decisions|resync]\n", argv[0]);
    return 1;
  }
  if (part != "resync") resmgr::test::MeasureDecisions();
  return part == "decisions" || resmgr::test::MeasureResync() ? 0 : 1;
}
