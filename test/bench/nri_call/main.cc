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
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

#include "pkg/log/log.h"
#include "pkg/nri/protocol.h"
#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/bench/canned_backend.h"
#include "test/bench/daemon_options.h"
#include "test/bench/load_client.h"
#include "test/bench/pin.h"
#include "test/bench/scenario.h"
#include "test/support/containerd/child_process.h"
#include "test/support/containerd/daemon.h"

namespace resmgr::bench {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

using nri::test::FakePlugin;
using Process = std::unique_ptr<test::ChildProcess>;

constexpr double kMostMicros = 60;  // the target
constexpr int kCalls = 200;         // of each kind in a round

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "nri-call-bench: %s\n", what.c_str());
  std::exit(1);
}

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

double MedianOf(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// A host that does nothing but ask.
class BareHost {
 public:
  BareHost(EventLoop& loop, UniqueFd socket)
      : loop_(loop),
        trunk_(loop, std::move(socket), [](const Status& why) { Fail(Describe(why)); }),
        plugin_(loop, trunk_, nri::kPluginConnection, budget_),
        runtime_(loop, trunk_, nri::kRuntimeConnection, budget_, nri::kRuntimeService,
                 {{"RegisterPlugin", [this](const std::string&, std::chrono::nanoseconds,
                                            const ttrpc::Server::Reply& reply) {
                     registered_ = true;
                     reply(std::string());
                     loop_.Stop();
                   }}}) {
    while (!registered_)
      loop_.Run();
    Call("Configure", api::ConfigureRequest().SerializeAsString());
    Call("Synchronize", api::SynchronizeRequest().SerializeAsString());
  }

  // Microseconds.
  double Call(const char* method, const std::string& payload) {
    bool answered = false;
    const auto begin = std::chrono::steady_clock::now();
    plugin_.Call(nri::kPluginService, method, payload, std::chrono::seconds(60),
                 [&](const StatusOr<std::string>& answer) {
                   if (!answer.ok()) Fail(Describe(answer.status()));
                   answered = true;
                   loop_.Stop();
                 });
    while (!answered)
      loop_.Run();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
  }

 private:
  EventLoop& loop_;
  bool registered_ = false;
  ttrpc::MemoryBudget budget_;
  ttrpc::Multiplexer trunk_;
  ttrpc::Client plugin_;
  ttrpc::Server runtime_;
};

// A question about as long as the daemon's about a CreateContainer of 4 KB.
std::string Question() {
  api::CreateContainerRequest request;
  request.mutable_pod()->set_id(std::string(64, 'p'));
  request.mutable_pod()->set_name("bench");
  api::Container& container = *request.mutable_container();
  container.set_id(std::string(64, 'c'));
  container.set_name("main");
  while (request.ByteSizeLong() < 4'000)
    container.add_env(fmt::format("SERVICE_{}_PORT=tcp://10.96.0.7:443", container.env_size()));
  return request.SerializeAsString();
}

class Bench {
 public:
  explicit Bench(const DaemonOptions& options) : options_(options) {
    backend_ = Own("--backend", "backend.sock");
    WaitFor("backend.sock");
    std::ofstream(File("plain.yaml")) << "{}\n";
    std::ofstream(File("hosts.yaml"))
        << "nri: {Host: {Socket: " << File("nri.sock")
        << ", PluginPath: disabled, Plugins: {10-fake: {Required: true}}}}\n";
    plain_ = Daemon("plain");
    hosts_ = Daemon("hosts");
    plugin_ = Own("--plugin", "nri.sock");
    auto listener = ListeningSocket::Create(File("bare.sock"), 0600);
    if (!listener.ok()) Fail(Describe(listener.status()));
    bare_plugin_ = Own("--plugin", "bare.sock");
    pollfd waiting{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, 20'000) != 1) Fail("the plugin does not connect");
    auto accepted = listener->Accept();
    if (!accepted.ok() || !accepted->has_value()) Fail("the plugin does not connect");
    bare_.emplace(loop_, **std::move(accepted));
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
      bare.push_back(bare_->Call("CreateContainer", question_));
      CreateOne(hosted);
    }
    std::vector<double> in_a_row;
    for (int i = 0; i < kCalls; ++i)
      in_a_row.push_back(bare_->Call("CreateContainer", question_));
    Remove(plain);
    Remove(hosted);
    return {.plain = MedianOf(std::move(plain.times)),
            .hosted = MedianOf(std::move(hosted.times)),
            .bare = MedianOf(std::move(bare)),
            .bare_in_a_row = MedianOf(std::move(in_a_row))};
  }

 private:
  std::string File(const std::string& name) const { return directory_.File(name); }
  Process Own(const char* flag, const std::string& socket) {
    auto process = test::ChildProcess::Start({"/proc/self/exe", flag, File(socket)},
                                             File(std::string(flag + 2) + ".log"));
    if (!process.ok()) Fail(Describe(process.status()));
    return *std::move(process);
  }
  std::unique_ptr<test::DaemonProcess> Daemon(const std::string& name) {
    auto daemon = test::DaemonProcess::Start({"-config",
                                              File(name + ".yaml"),
                                              "-policy",
                                              "static",
                                              "-reserved-resources",
                                              "CPU=1",
                                              "-topology",
                                              "synthetic:package:1 core:32 pu:2",
                                              "-relay-socket",
                                              File(name + ".sock"),
                                              "-runtime-socket",
                                              File("backend.sock"),
                                              "-relay-dir",
                                              File(name),
                                              "-config-socket",
                                              "disabled",
                                              "-admin-socket",
                                              "disabled",
                                              "-agent-socket",
                                              "disabled",
                                              "-logger-level",
                                              "warn"},
                                             File(name + ".log"), {}, options_.daemon);
    if (!daemon.ok()) Fail(Describe(daemon.status()));
    WaitFor(name + ".sock");
    return *std::move(daemon);
  }
  void WaitFor(const std::string& socket) const {
    for (int i = 0; i < 2000; ++i) {
      if (ConnectUnix(File(socket)).ok()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    Fail("nothing serves " + socket);
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
    creations.times.push_back(
        std::chrono::duration<double, std::micro>(result.latencies[0]).count());
    creations.replies.push_back(std::move(result.replies[0]));
  }
  static void Remove(const Creations& creations) {
    const Status removed = RemoveContainers(creations.client, creations.replies);
    if (!removed.ok()) Fail(Describe(removed));
  }

  const DaemonOptions options_;
  const TempDir directory_;
  const std::string question_ = Question();
  int number_ = 0;
  EventLoop loop_;
  // Ended in the reverse order.
  Process backend_;
  std::unique_ptr<test::DaemonProcess> plain_;
  std::unique_ptr<test::DaemonProcess> hosts_;
  Process plugin_;
  Process bare_plugin_;
  std::optional<BareHost> bare_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
};

int Main(const DaemonOptions& options) {
  if (!Pin(options.cpu)) Fail(fmt::format("cannot run on CPU {}", options.cpu));
  Bench bench(options);
  (void)bench.Measure();
  std::array<std::vector<double>, 5> columns;
  for (int i = 0; i < options.rounds; ++i) {
    const Bench::Round round = bench.Measure();
    const std::array values{round.plain, round.hosted, round.bare, round.added(),
                            round.bare_in_a_row};
    for (size_t j = 0; j < values.size(); ++j)
      columns[j].push_back(values[j]);
  }
  bench.End();
  const double added = MedianOf(columns[3]);
  std::printf(
      "CreateContainer of 4 KB, p50: without plugins %.1f us, with one %.1f us; its own round trip "
      "%.1f us, in a row %.1f us\nadded beside that: %.1f us; target %.0f us: %s\n",
      MedianOf(columns[0]), MedianOf(columns[1]), MedianOf(columns[2]), MedianOf(columns[4]), added,
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
