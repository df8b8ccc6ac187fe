// SPDX-License-Identifier: Apache-2.0
// The time that one plugin that answers adds to CreateContainer: `nri-call-bench`. The same
// creations pass a daemon without plugins and one that hosts one; the plugin's own round trip,
// between it and a host that does nothing but ask, is subtracted. All are processes of their own on
// one CPU, and the three are measured in turn, call by call: a plugin that answers a creation has
// not run for as long as it takes others to create a container, and its code and data are in no
// cache. In a row, which is shown beside it, the same round trip takes less.
//   --rounds N        instead of 21
//   --daemon PROGRAM  another cri-resmgr than the built one, or one that runs it under a profiler;
//                     it may be slow
//   --cpu N           the CPU that all share instead of 0; -1: nothing is pinned
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pkg/log/log.h"
#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/bench/canned_backend.h"
#include "test/bench/daemon_options.h"
#include "test/bench/figures.h"
#include "test/bench/load_client.h"
#include "test/bench/nri_runtime.h"
#include "test/bench/pin.h"
#include "test/bench/scenario.h"
#include "test/bench/server.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::bench {
namespace {

using nri::test::FakePlugin;
using Process = std::unique_ptr<test::ChildProcess>;

constexpr double kMostMicros = 60;  // the target
constexpr int kCalls = 200;         // of each kind in a round

// Asked about creations alone; adds a variable to each container.
int RunPlugin(const std::string& socket) {
  EventLoop loop;
  StatusOr<UniqueFd> connected = ConnectUnix(socket);
  for (int i = 0; !connected.ok() && i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    connected = ConnectUnix(socket);
  }
  if (!connected.ok()) return 1;
  FakePlugin plugin(
      loop, *std::move(connected),
      {.events = static_cast<int32_t>(uint32_t{1} << (api::EVENT_CREATE_CONTAINER - 1))});
  plugin.create = [](const api::CreateContainerRequest&) {
    api::CreateContainerResponse response;
    api::KeyValue& variable = *response.mutable_adjust()->add_env();
    variable.set_key("FROM_PLUGIN");
    variable.set_value("yes");
    return response;
  };
  const auto lost = loop.Every(std::chrono::seconds(1), [&] {
    plugin.told.clear();
    if (plugin.lost) loop.Stop();
  });
  loop.Run();
  return 0;
}

// A question about as long as the daemon's about a CreateContainer of 4 KB.
api::CreateContainerRequest Question() {
  api::CreateContainerRequest request;
  request.mutable_pod()->set_id(std::string(64, 'p'));
  request.mutable_pod()->set_name("bench");
  api::Container& container = *request.mutable_container();
  container.set_id(std::string(64, 'c'));
  container.set_name("main");
  while (request.ByteSizeLong() < 4'000)
    container.add_env(fmt::format("SERVICE_{}_PORT=tcp://10.96.0.7:443", container.env_size()));
  return request;
}

class Bench {
 public:
  explicit Bench(const DaemonOptions& options) : options_(options) {
    auto backend = StartServer({"/proc/self/exe", "--backend", File("backend.sock")},
                               File("backend.sock"), File("backend.log"));
    if (!backend.ok()) Fail(Describe(backend.status()));
    backend_ = *std::move(backend);
    std::ofstream(File("plain.yaml")) << "{}\n";
    std::ofstream(File("hosts.yaml"))
        << "nri: {Host: {Socket: " << File("nri.sock")
        << ", PluginPath: disabled, Plugins: {10-fake: {Required: true}}}}\n";
    plain_ = Daemon("plain");
    hosts_ = Daemon("hosts");
    plugin_ = Plugin("nri.sock");
    auto listener = ListeningSocket::Create(File("bare.sock"), 0600);
    if (!listener.ok()) Fail(Describe(listener.status()));
    bare_plugin_ = Plugin("bare.sock");
    // It does nothing but ask.
    bare_.emplace(loop_, AcceptFirst(*listener));
    bare_->Begin({});
    for (const char* const name : {"plain", "hosts"}) {
      clients_.push_back(std::make_unique<LoadClient>(File(std::string(name) + ".sock")));
      if (const Status run = RunPod(*clients_.back()); !run.ok()) Fail(Describe(run));
      // Waits until the plugin is connected.
      LoadResult first;
      for (int i = 0; i < 1000 && (i == 0 || first.errors > 0); ++i) {
        if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        first = Create(*clients_.back(), 1);
      }
    }
  }

  // Ends the daemons as systemd does, since a profile is written at the end.
  void End() {
    (void)plain_->Terminate();
    (void)hosts_->Terminate();
  }

  // The medians of a round, in microseconds.
  struct Round {
    double plain = 0;
    double hosted = 0;
    double bare = 0;
    double bare_in_a_row = 0;
    double added() const { return hosted - plain - bare; }
  };
  Round Measure() {
    Creations plain{*clients_[0]};
    Creations hosted{*clients_[1]};
    std::vector<double> bare;
    for (int i = 0; i < kCalls; ++i) {
      CreateOne(plain);
      bare.push_back(AskBare());
      CreateOne(hosted);
    }
    std::vector<double> in_a_row;
    in_a_row.reserve(kCalls);
    for (int i = 0; i < kCalls; ++i)
      in_a_row.push_back(AskBare());
    Remove(plain);
    Remove(hosted);
    return {.plain = Median(std::move(plain.times)),
            .hosted = Median(std::move(hosted.times)),
            .bare = Median(std::move(bare)),
            .bare_in_a_row = Median(std::move(in_a_row))};
  }

 private:
  std::string File(const std::string& name) const { return directory_.File(name); }
  Process Plugin(const std::string& socket) {
    auto process =
        test::ChildProcess::Start({"/proc/self/exe", "--plugin", File(socket)}, File("plugin.log"));
    if (!process.ok()) Fail(Describe(process.status()));
    return *std::move(process);
  }
  std::unique_ptr<test::DaemonProcess> Daemon(const std::string& name) {
    auto daemon = test::DaemonProcess::Start(
        Alone({"-config", File(name + ".yaml"), "-policy", "static", "-reserved-resources", "CPU=1",
               "-topology", "synthetic:package:1 core:32 pu:2", "-relay-socket",
               File(name + ".sock"), "-runtime-socket", File("backend.sock"), "-relay-dir",
               File(name), "-logger-level", "warn"}),
        File(name + ".log"), {}, options_.daemon);
    if (!daemon.ok()) Fail(Describe(daemon.status()));
    return *std::move(daemon);
  }
  LoadResult Create(LoadClient& client, int calls) {
    return client.Run({.path = RuntimePath("CreateContainer"),
                       .calls = calls,
                       .request = [this](int) { return CreateRequest(number_++); },
                       .keep_replies = true});
  }
  struct Creations {
    LoadClient& client;
    std::vector<double> times{};  // microseconds
    std::vector<std::string> replies{};
  };
  void CreateOne(Creations& creations) {
    LoadResult result = Create(creations.client, 1);
    if (result.errors > 0) Fail(result.first_error);
    creations.times.push_back(Micros(result.latencies[0]));
    creations.replies.push_back(std::move(result.replies[0]));
  }
  // The time of the plugin's own round trip, in microseconds.
  double AskBare() {
    double took = 0;
    bare_->Call<api::CreateContainerResponse>("CreateContainer", question_, &took);
    return took;
  }
  static void Remove(const Creations& creations) {
    const Status removed = RemoveContainers(creations.client, creations.replies);
    if (!removed.ok()) Fail(Describe(removed));
  }

  const DaemonOptions options_;
  const TempDir directory_;
  const api::CreateContainerRequest question_ = Question();
  int number_ = 0;
  EventLoop loop_;
  // Ended in the reverse order.
  Process backend_;
  std::unique_ptr<test::DaemonProcess> plain_;
  std::unique_ptr<test::DaemonProcess> hosts_;
  Process plugin_;
  Process bare_plugin_;
  std::optional<NriRuntime> bare_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
};

int Main(const DaemonOptions& options) {
  if (!Pin(options.cpu)) Fail(fmt::format("cannot run on CPU {}", options.cpu));
  Bench bench(options);
  (void)bench.Measure();
  std::vector<Bench::Round> rounds;
  rounds.reserve(static_cast<size_t>(options.rounds));
  for (int i = 0; i < options.rounds; ++i)
    rounds.push_back(bench.Measure());
  bench.End();
  const double added = MedianOf(rounds, &Bench::Round::added);
  std::printf(
      "CreateContainer of 4 KB, p50: without plugins %.1f us, with one %.1f us; its own round trip "
      "%.1f us, in a row %.1f us\nadded beside that: %.1f us; target %.0f us: %s\n",
      MedianOf(rounds, &Bench::Round::plain), MedianOf(rounds, &Bench::Round::hosted),
      MedianOf(rounds, &Bench::Round::bare), MedianOf(rounds, &Bench::Round::bare_in_a_row), added,
      kMostMicros, added < kMostMicros ? "met" : "MISSED");
  return added < kMostMicros ? 0 : 1;
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  resmgr::SetLogLevel(resmgr::LogLevel::kError);
  if (argc == 3 && std::string_view(argv[1]) == "--backend") {
    return resmgr::bench::CannedBackend().Run(argv[2]);
  }
  if (argc == 3 && std::string_view(argv[1]) == "--plugin")
    return resmgr::bench::RunPlugin(argv[2]);
  return resmgr::bench::Main(resmgr::bench::ParseDaemonOptions(argc, argv, 21));
}
