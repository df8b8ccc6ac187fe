// SPDX-License-Identifier: Apache-2.0
// The time that a hook server that answers at once adds to CreateContainer, beyond its own round
// trip: `hooks-bench`.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/api/runtimehook.pb.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "test/bench/canned_backend.h"
#include "test/bench/figures.h"
#include "test/bench/load_client.h"
#include "test/bench/pin.h"
#include "test/bench/process_stats.h"
#include "test/bench/scenario.h"
#include "test/bench/server.h"
#include "test/support/byte_buffer.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::bench {
namespace {

namespace cri = ::runtime::v1;
namespace hook_api = ::runtime::v1alpha1;
using std::chrono::steady_clock;
using test::ChildProcess;

constexpr std::chrono::seconds kCallTimeout{10};
// A daemon without a policy lists the runtime again beyond 64 containers, and the canned runtime
// lists none.
constexpr int kCalls = 50;
constexpr double kTargetMicros = 150;
constexpr char kHook[] = "/runtime.v1alpha1.RuntimeHookService/PreCreateContainerHook";

enum Way : size_t { kNull, kNullHooks, kStatic, kStaticHooks, kDaemons };
constexpr std::array<const char*, kDaemons> kNames{"null", "null with hooks", "static",
                                                   "static with hooks"};

// The daemon's question about a creation of CreateRequest, in the same bytes but for their order.
std::string HookRequest() {
  cri::CreateContainerRequest create;
  create.ParseFromString(test::ToBytes(CreateRequest(0)));
  const cri::ContainerConfig& config = create.config();
  hook_api::ContainerResourceHookRequest request;
  request.mutable_pod_meta()->set_name(create.sandbox_config().metadata().name());
  request.mutable_pod_meta()->set_uid(create.sandbox_config().metadata().uid());
  request.mutable_pod_meta()->set_namespace_(create.sandbox_config().metadata().namespace_());
  request.mutable_container_meta()->set_name(config.metadata().name());
  *request.mutable_container_annotations() = config.annotations();
  *request.mutable_pod_annotations() = create.sandbox_config().annotations();
  *request.mutable_pod_labels() = create.sandbox_config().labels();
  request.set_pod_cgroup_parent(create.sandbox_config().linux().cgroup_parent());
  request.mutable_container_resources()->ParseFromString(
      config.linux().resources().SerializeAsString());
  for (const cri::KeyValue& variable : config.envs())
    (*request.mutable_container_envs())[variable.key()] = variable.value();
  return request.SerializeAsString();
}

// Asks the hook server as the daemon does, by the daemon's own client.
class HookClient {
 public:
  static StatusOr<std::unique_ptr<HookClient>> Connect(const std::string& socket) {
    std::unique_ptr<HookClient> client(new HookClient(socket));
    RESMGR_RETURN_IF_ERROR(client->client_.Connect([](const Status&) {}));
    return client;
  }

  // The median time of an answer, in microseconds.
  StatusOr<double> RoundTrip() {
    std::vector<double> times;
    for (int i = 0; i < kCalls; ++i) {
      const auto start = steady_clock::now();
      Status status;
      client_.Call(kHook, request_, kCallTimeout, [&](const StatusOr<std::string>& answer) {
        times.push_back(Micros(steady_clock::now() - start));
        status = answer.status();
        loop_.Stop();
      });
      loop_.Run();
      RESMGR_RETURN_IF_ERROR(status);
    }
    return Median(std::move(times));
  }

 private:
  explicit HookClient(const std::string& socket) : client_(loop_, flushes_, socket) {}

  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  const std::string request_ = HookRequest();
  UnaryClient client_;
};

struct Round {
  std::array<double, kDaemons> p50{};
  std::array<double, kDaemons> cpu{};  // of the daemon, for a creation and a removal
  double hook = 0;                     // of the server alone

  double AddedBy(Way plain, Way hooked) const { return p50[hooked] - p50[plain]; }
};

class Bench {
 public:
  static StatusOr<std::unique_ptr<Bench>> Make() {
    std::unique_ptr<Bench> bench(new Bench);
    RESMGR_RETURN_IF_ERROR(bench->StartAll());
    return bench;
  }

  // Runs the daemons in an order that changes from round to round.
  StatusOr<Round> RunRound(size_t number) {
    Round round;
    for (size_t i = 0; i <= kDaemons; ++i) {
      const size_t way = (i + number) % (kDaemons + 1);
      if (way == kDaemons) {
        RESMGR_ASSIGN_OR_RETURN(round.hook, hook_->RoundTrip());
        continue;
      }
      const auto before = CpuTime(daemons_[way]->pid());
      RESMGR_ASSIGN_OR_RETURN(round.p50[way], Creations(*clients_[way]));
      round.cpu[way] = Micros(CpuTime(daemons_[way]->pid()) - before) / kCalls;
    }
    return round;
  }

 private:
  Bench() = default;

  std::string File(const std::string& name) const { return directory_.File(name); }

  Status StartProcess(const std::vector<std::string>& argv, const std::string& socket) {
    RESMGR_ASSIGN_OR_RETURN(auto process, StartServer(argv, socket, File("log")));
    processes_.push_back(std::move(process));
    return OkStatus();
  }

  Status StartDaemon(Way way) {
    const std::string name = fmt::format("daemon{}", static_cast<size_t>(way));
    const std::string socket = File(name + ".sock");
    std::vector<std::string> argv =
        Alone({RESMGR_BINARY_DIR "/cmd/cri-resmgr/cri-resmgr", "-topology",
               "synthetic:package:1 core:32 pu:2", "-relay-socket", socket, "-runtime-socket",
               File("backend.sock"), "-relay-dir", File(name)});
    if (way == kStatic || way == kStaticHooks) {
      argv.insert(argv.end(), {"-policy", "static", "-reserved-resources", "CPU=1"});
    }
    if (way == kNullHooks || way == kStaticHooks) {
      argv.insert(argv.end(), {"-hook-dir", File("hooks.d")});
    }
    RESMGR_RETURN_IF_ERROR(StartProcess(argv, socket));
    daemons_[way] = processes_.back().get();
    clients_[way] = std::make_unique<LoadClient>(socket);
    return RunPod(*clients_[way]);
  }

  Status StartAll() {
    RESMGR_RETURN_IF_ERROR(
        StartProcess({"/proc/self/exe", "--backend", File("backend.sock")}, File("backend.sock")));
    RESMGR_RETURN_IF_ERROR(
        StartProcess({RESMGR_BINARY_DIR "/test/support/hook_server/resmgr-hook-server", "-socket",
                      File("hook.sock"), "-shares", "99"},
                     File("hook.sock")));
    std::filesystem::create_directory(File("hooks.d"));
    std::ofstream(File("hooks.d/10.json"))
        << R"({"failure-policy": "Fail", "runtime-hooks": ["PreCreateContainer"], )"
        << R"("remote-endpoint": ")" << File("hook.sock") << "\"}";
    RESMGR_ASSIGN_OR_RETURN(hook_, HookClient::Connect(File("hook.sock")));
    for (const Way way : {kNull, kNullHooks, kStatic, kStaticHooks})
      RESMGR_RETURN_IF_ERROR(StartDaemon(way));
    return OkStatus();
  }

  static StatusOr<double> Creations(LoadClient& client) {
    const LoadResult result = client.Run({.path = RuntimePath("CreateContainer"),
                                          .calls = kCalls,
                                          .request = CreateRequest,
                                          .keep_replies = true});
    if (result.errors > 0) return Unavailable("{}", result.first_error);
    RESMGR_RETURN_IF_ERROR(RemoveContainers(client, result.replies));
    std::vector<double> times;
    for (const auto latency : result.latencies)
      times.push_back(Micros(latency));
    return Median(std::move(times));
  }

  TempDir directory_;
  std::vector<std::unique_ptr<ChildProcess>> processes_;
  std::unique_ptr<HookClient> hook_;
  std::array<ChildProcess*, kDaemons> daemons_{};
  std::array<std::unique_ptr<LoadClient>, kDaemons> clients_;
};

// Whether the target is met.
bool Print(const std::vector<Round>& rounds) {
  const auto median = [&rounds](const auto& of) { return MedianOf(rounds, of); };
  std::printf("CreateContainer of 4 KB, p50; medians of %zu rounds\n", rounds.size());
  for (size_t way = 0; way < kDaemons; ++way) {
    std::printf("  %-18s %8.1f us, CPU %6.1f us\n", kNames[way],
                median([way](const Round& round) { return round.p50[way]; }),
                median([way](const Round& round) { return round.cpu[way]; }));
  }
  std::printf("  %-18s %8.1f us\n", "the server alone", median(&Round::hook));
  const auto print_added = [&median](Way plain, Way hooked) {
    const double added =
        median([&](const Round& round) { return round.AddedBy(plain, hooked) - round.hook; });
    const double ratio =
        median([&](const Round& round) { return round.AddedBy(plain, hooked) / round.hook; });
    const bool met = added < kTargetMicros;
    std::printf("  %s: added %.1f us beyond the server's round trip (target %.0f%s), %.2f of it\n",
                kNames[hooked], added, kTargetMicros, met ? "" : ": MISSED", ratio);
    return met;
  };
  const bool null_met = print_added(kNull, kNullHooks);
  return print_added(kStatic, kStaticHooks) && null_met;
}

int Run(int rounds_wanted) {
  // All processes run on one CPU: with more CPUs the numbers would include wake-ups.
  (void)Pin(0);
  const auto bench = Bench::Make();
  if (!bench.ok()) {
    std::fprintf(stderr, "%s\n", Describe(bench.status()).c_str());
    return 2;
  }
  std::vector<Round> rounds;
  // The first round warms up and is not counted.
  for (int i = 0; i <= rounds_wanted; ++i) {
    const auto round = (*bench)->RunRound(static_cast<size_t>(i));
    if (!round.ok()) {
      std::fprintf(stderr, "%s\n", Describe(round.status()).c_str());
      return 2;
    }
    if (i > 0) rounds.push_back(*round);
  }
  return Print(rounds) ? 0 : 1;
}

int Main(int argc, char** argv) {
  constexpr int kRounds = 101;
  constexpr int kQuickRounds = 11;
  const std::string_view flag = argc > 1 ? argv[1] : "";
  if (flag == "--backend" && argc == 3) return CannedBackend().Run(argv[2]);
  if (argc > 2 || (argc == 2 && flag != "--quick")) {
    std::fprintf(stderr, "usage: %s [--quick]\n", argv[0]);
    return 2;
  }
  return Run(argc == 2 ? kQuickRounds : kRounds);
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Main(argc, argv);
}
