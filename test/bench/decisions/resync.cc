// SPDX-License-Identifier: Apache-2.0
#include "test/bench/decisions/resync.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/log/log.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

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
    Require(manager.ready() && placed == kNodeContainers, "containers are missing");
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

}  // namespace

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

}  // namespace resmgr::test
