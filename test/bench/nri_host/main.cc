// SPDX-License-Identifier: Apache-2.0
// The cost for our host of making NRI plugins ready, and the time that a plugin waits for its view
// of the node: `nri-host-bench`. The plugins are ours, on a thread of their own.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pkg/log/log.h"
#include "pkg/nri/host/session/plugin_host.h"
#include "pkg/nri/host/view/host_view.h"
#include "pkg/nri/testing/fake_access.h"
#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/runtime/inventory.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::nri::test {
namespace {

// The target: the host's processor time for 16 plugins, 200 pods and 1,000 containers.
constexpr double kMostMillis = 100;
constexpr int kRounds = 9;

double MillisOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// A container as large as a usual service's: about 3 KiB.
api::Container SomeContainer(int pod, int number) {
  api::Container container;
  container.set_id(fmt::format("{:064x}", pod * 1000 + number));
  container.set_pod_sandbox_id(fmt::format("{:064x}", pod));
  container.set_name(fmt::format("container-{}", number));
  container.set_state(api::CONTAINER_RUNNING);
  for (int i = 0; i < 5; ++i) {
    (*container.mutable_labels())[fmt::format("io.kubernetes.label/{}", i)] = "a value of it";
    (*container.mutable_annotations())[fmt::format("io.kubernetes.annotation/{}", i)] = "another";
    api::Mount& mount = *container.add_mounts();
    mount.set_destination(fmt::format("/var/lib/data/{}", i));
    mount.set_source(fmt::format("/var/lib/kubelet/pods/{}/volumes/{}", pod, i));
    mount.add_options("rbind");
    mount.add_options("rprivate");
  }
  for (int i = 0; i < 40; ++i)
    container.add_env(fmt::format("SERVICE_{}_PORT=tcp://10.96.0.{}:443", i, i));
  container.mutable_linux()->mutable_resources()->mutable_cpu()->set_cpus("0-3");
  return container;
}

api::SynchronizeRequest Node(int pods, int containers_of_each) {
  api::SynchronizeRequest all;
  for (int pod = 0; pod < pods; ++pod) {
    api::PodSandbox& sandbox = *all.add_pods();
    sandbox.set_id(fmt::format("{:064x}", pod));
    sandbox.set_name(fmt::format("pod-{}", pod));
    sandbox.set_namespace_("default");
    for (int i = 0; i < 10; ++i)
      (*sandbox.mutable_annotations())[fmt::format("example.com/annotation-{}", i)] = "its value";
    for (int i = 0; i < containers_of_each; ++i)
      *all.add_containers() = SomeContainer(pod, i);
  }
  return all;
}

// Gives each plugin the node, as the stage does that knows pods and containers.
class NodeListener final : public PluginListener {
 public:
  NodeListener(EventLoop& loop, const api::SynchronizeRequest& node) : clock_(loop) {
    view_.Attach();
    for (const api::PodSandbox& sandbox : node.pods())
      view_.AddPod(sandbox, true);
    for (const api::Container& container : node.containers()) {
      const auto known = view_.Begin(view_.FindPod(container.pod_sandbox_id()), container,
                                     /*attempt=*/0);
      view_.SetId(known, ContainerId(container.id()));
    }
  }

  SharedSyncMessages Inventory(PluginPort& /*plugin*/) override {
    const double begin = MillisOf(CLOCK_THREAD_CPUTIME_ID);
    SharedSyncMessages all = view_.All(/*real_ids=*/false);
    encoding += MillisOf(CLOCK_THREAD_CPUTIME_ID) - begin;
    return all;
  }
  void OnReady(PluginPort& /*plugin*/, std::vector<api::ContainerUpdate> /*updates*/) override {
    ++ready;
  }
  void OnUpdateContainers(PluginPort& /*plugin*/, const api::UpdateContainersRequest& /*request*/,
                          Updated done) override {
    done({});
  }
  void OnLost(PluginPort& /*plugin*/, const Status& /*why*/) override {}

  size_t ready = 0;
  double encoding = 0;  // in milliseconds

 private:
  LoopClock clock_;
  FakeAccess runtime_;  // is asked nothing that the bench waits for
  resmgr::Inventory inventory_{clock_, runtime_};
  HostView view_{inventory_, {}};
};

struct Cost {
  double encoding = 0;  // of the node for the plugins, in milliseconds of the host's thread
  double cpu = 0;       // of the host's thread, that time included, in milliseconds
  double wall = 0;      // from the first connection until all are ready, in milliseconds
};

// Connects so many plugins and runs the host until all are ready.
Cost Connect(const api::SynchronizeRequest& node, size_t plugins) {
  const TempDir directory;
  EventLoop loop;
  NodeListener listener(loop, node);
  PluginHost host(loop, listener,
                  {.socket = directory.File("nri.sock"), .plugin_path = "", .most_plugins = 64});
  if (!host.Start().ok()) std::abort();
  EventLoop theirs;
  const double cpu = MillisOf(CLOCK_THREAD_CPUTIME_ID);
  const double wall = MillisOf(CLOCK_MONOTONIC);
  std::thread thread([&] {
    std::vector<std::unique_ptr<FakePlugin>> connected;
    for (size_t i = 0; i < plugins; ++i) {
      StatusOr<UniqueFd> socket = ConnectUnix(directory.File("nri.sock"));
      if (!socket.ok()) std::abort();
      connected.push_back(std::make_unique<FakePlugin>(
          theirs, *std::move(socket),
          FakePluginOptions{.dialect = Dialect::k08, .name = fmt::format("p{}", i)}));
    }
    theirs.Run();
  });
  const auto poll = loop.Every(std::chrono::milliseconds(1), [&] {
    if (listener.ready == plugins) loop.Stop();
  });
  loop.Run();
  const Cost cost{.encoding = listener.encoding,
                  .cpu = MillisOf(CLOCK_THREAD_CPUTIME_ID) - cpu,
                  .wall = MillisOf(CLOCK_MONOTONIC) - wall};
  theirs.Stop();
  thread.join();
  return cost;
}

Cost Median(const api::SynchronizeRequest& node, size_t plugins) {
  std::vector<Cost> costs;
  costs.reserve(kRounds);
  for (int round = 0; round < kRounds; ++round)
    costs.push_back(Connect(node, plugins));
  const auto median = [&costs](double Cost::*part) {
    std::sort(costs.begin(), costs.end(),
              [part](const Cost& a, const Cost& b) { return a.*part < b.*part; });
    return costs[kRounds / 2].*part;
  };
  return {
      .encoding = median(&Cost::encoding), .cpu = median(&Cost::cpu), .wall = median(&Cost::wall)};
}

bool Measure() {
  std::printf("%8s %6s %11s %6s %11s %12s %13s\n", "plugins", "pods", "containers", "MiB",
              "encoding ms", "host CPU ms", "all ready ms");
  bool met = true;
  const auto row = [&met](int pods, int of_each, size_t plugins, double most) {
    const api::SynchronizeRequest node = Node(pods, of_each);
    const Cost cost = Median(node, plugins);
    std::printf("%8zu %6d %11d %6.1f %11.1f %12.1f %13.1f\n", plugins, pods, pods * of_each,
                static_cast<double>(node.ByteSizeLong()) / (1 << 20), cost.encoding, cost.cpu,
                cost.wall);
    if (cost.cpu > most) {
      std::printf("missed: %.0f ms are the most\n", most);
      met = false;
    }
  };
  for (const int pods : {10, 100, 250})
    row(pods, 4, 1, kMostMillis);
  row(200, 5, 16, kMostMillis);
  return met;
}

}  // namespace
}  // namespace resmgr::nri::test

int main() {
  resmgr::SetLogLevel(resmgr::LogLevel::kWarn);
  return resmgr::nri::test::Measure() ? 0 : 1;
}
