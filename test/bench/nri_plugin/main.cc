// SPDX-License-Identifier: Apache-2.0
// How long a runtime waits for cri-resmgr in plugin mode: `nri-plugin-bench`. The runtime is ours,
// the daemon a process of its own on a machine of 512 CPUs with 500 containers, of which every
// fifth one is exclusive. Twice: shared ones without a CPU limit have the CPUs of a package, so
// that an exclusive one moves those of half the machine; those with one have the CPUs of a NUMA
// node. Both processes share one CPU: with two of them the figures say more about how long an idle
// one takes to wake up.
//   --rounds N        instead of 3000
//   --daemon PROGRAM  another cri-resmgr than the built one, or one that runs it under a profiler
//   --cpu N           the CPU that both share instead of 0; -1: nothing is pinned
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/bench/daemon_options.h"
#include "test/bench/figures.h"
#include "test/bench/nri_runtime.h"
#include "test/bench/pin.h"
#include "test/bench/server.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::bench {
namespace {

// The targets: medians of CreateContainer in microseconds. The answer to an exclusive one waits for
// a look at the cgroups of containers that leave its CPUs.
constexpr double kMostShared = 150;
constexpr double kMostExclusive = 3000;
constexpr int kContainers = 500;
constexpr int64_t kPeriod = 100'000;

enum class Kind { kUnlimited, kLimited, kExclusive };

api::PodSandbox PodOf(int number, Kind kind) {
  api::PodSandbox pod;
  pod.set_id(fmt::format("{:064x}", number));
  pod.set_name(fmt::format("pod-{}", number));
  pod.set_namespace_("default");
  pod.set_uid(fmt::format("uid-{}", number));
  pod.mutable_linux()->set_cgroup_parent(
      fmt::format("/kubepods/{}poduid-{}", kind == Kind::kExclusive ? "" : "burstable/", number));
  return pod;
}

// The container of a pod: two exclusive CPUs, or a share of 300m, limited to 600m or not at all.
// Its environment is that of a usual service.
api::Container ContainerOf(int number, Kind kind) {
  api::Container container;
  container.set_id(fmt::format("{:064x}", 1'000'000 + number));
  container.set_pod_sandbox_id(fmt::format("{:064x}", number));
  container.set_name("main");
  for (int i = 0; i < 40; ++i)
    container.add_env(fmt::format("SERVICE_{}_PORT=tcp://10.96.0.{}:443", i, i));
  api::LinuxCPU& cpu = *container.mutable_linux()->mutable_resources()->mutable_cpu();
  cpu.mutable_shares()->set_value(kind == Kind::kExclusive ? 2048 : 307);
  if (kind != Kind::kUnlimited) {
    cpu.mutable_quota()->set_value(kind == Kind::kExclusive ? 2 * kPeriod : kPeriod * 6 / 10);
    cpu.mutable_period()->set_value(kPeriod);
  }
  return container;
}

template <typename Request>
Request About(int number, Kind kind) {
  Request request;
  *request.mutable_pod() = PodOf(number, kind);
  *request.mutable_container() = ContainerOf(number, kind);
  return request;
}

api::StateChangeEvent EventOf(api::Event event, int number, Kind kind) {
  auto told = About<api::StateChangeEvent>(number, kind);
  told.set_event(event);
  if (event == api::EVENT_RUN_POD_SANDBOX || event == api::EVENT_REMOVE_POD_SANDBOX) {
    told.clear_container();
  }
  return told;
}

// The time of a creation, and how many other containers its answer moved.
struct Creation {
  double took = 0;  // microseconds
  int moved = 0;
};

// Creates a container and ends it.
Creation Live(NriRuntime& runtime, int number, Kind kind) {
  const auto tell = [&](api::Event event) {
    runtime.Call<api::Empty>("StateChange", EventOf(event, number, kind));
  };
  Creation creation;
  tell(api::EVENT_RUN_POD_SANDBOX);
  const auto response = runtime.Call<api::CreateContainerResponse>(
      "CreateContainer", About<api::CreateContainerRequest>(number, kind), &creation.took);
  creation.moved = response.update_size();
  tell(api::EVENT_START_CONTAINER);
  runtime.Call<api::StopContainerResponse>("StopContainer",
                                           About<api::StopContainerRequest>(number, kind));
  tell(api::EVENT_REMOVE_CONTAINER);
  tell(api::EVENT_REMOVE_POD_SANDBOX);
  return creation;
}

// Returns the median of these microseconds.
double Report(const char* name, std::vector<double> times) {
  std::ranges::sort(times);
  const double median = Median(times);
  std::printf("%-28s p50 %7.1f us  p99 %7.1f us  longest %8.1f us\n", name, median,
              times[times.size() * 99 / 100], times.back());
  return median;
}

std::unique_ptr<test::DaemonProcess> StartDaemon(const TempDir& directory,
                                                 const DaemonOptions& options) {
  auto daemon = test::DaemonProcess::Start(
      Alone({"-mode", "nri-plugin", "-nri-socket", directory.File("nri.sock"), "-policy",
             "topology-aware", "-reserved-resources", "CPU=2", "-topology",
             "synthetic:package:2 numa:4 l3:8 core:4 pu:2", "-relay-dir", directory.File("state"),
             "-logger-level", "warn"}),
      directory.File("daemon.log"), {}, options.daemon);
  if (!daemon.ok()) Fail(Describe(daemon.status()));
  return *std::move(daemon);
}

// Measures with shared containers of this kind. False: a limit was exceeded.
bool Measure(const DaemonOptions& options, Kind shared_kind) {
  const TempDir directory;
  EventLoop loop;
  auto listener = ListeningSocket::Create(directory.File("nri.sock"), 0600);
  if (!listener.ok()) Fail(Describe(listener.status()));
  const auto daemon = StartDaemon(directory, options);
  NriRuntime runtime(loop, AcceptFirst(*listener));

  api::SynchronizeRequest inventory;
  for (int i = 0; i < kContainers; ++i) {
    const Kind kind = i % 5 == 0 ? Kind::kExclusive : shared_kind;
    *inventory.add_pods() = PodOf(i, kind);
    *inventory.add_containers() = ContainerOf(i, kind);
    inventory.mutable_containers(i)->set_state(api::CONTAINER_RUNNING);
  }
  runtime.Begin(inventory);
  std::map<Kind, std::vector<double>> times;
  std::vector<double> nothing;  // an event about which nothing is decided, for comparison
  int64_t moved = 0;
  for (int i = 0; i < options.rounds; ++i) {
    for (const Kind kind : {shared_kind, Kind::kExclusive}) {
      const Creation creation = Live(runtime, kContainers + i % 100, kind);
      times[kind].push_back(creation.took);
      moved += creation.moved;
    }
    double took = 0;
    runtime.Call<api::Empty>("StateChange",
                             EventOf(api::EVENT_POST_START_CONTAINER, 1, shared_kind), &took);
    nothing.push_back(took);
  }
  std::printf("%d containers on 512 CPUs, topology-aware, shared ones %s\n", kContainers,
              shared_kind == Kind::kLimited ? "with a CPU limit" : "without a CPU limit");
  Report("event, nothing decided", nothing);
  const double shared = Report("CreateContainer, shared", times[shared_kind]);
  const double exclusive = Report("CreateContainer, 2 exclusive", times[Kind::kExclusive]);
  std::printf("an exclusive one moves %.0f others in its answer\n",
              static_cast<double>(moved) / options.rounds);
  (void)daemon->Terminate();  // a profile is written at the end
  const auto verdict = [](bool met) { return met ? "met" : "MISSED"; };
  const bool shared_met = shared < kMostShared;
  const bool exclusive_met = exclusive < kMostExclusive;
  std::printf("targets: shared %.0f us %s, exclusive %.0f us %s\n", kMostShared,
              verdict(shared_met), kMostExclusive, verdict(exclusive_met));
  return shared_met && exclusive_met;
}

int Main(const DaemonOptions& options) {
  if (!Pin(options.cpu)) Fail(fmt::format("cannot run on CPU {}", options.cpu));
  const bool limited = Measure(options, Kind::kLimited);
  const bool unlimited = Measure(options, Kind::kUnlimited);
  return limited && unlimited ? 0 : 1;
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Main(resmgr::bench::ParseDaemonOptions(argc, argv, 3000));
}
