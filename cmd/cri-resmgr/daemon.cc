// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/daemon.h"

#include <csignal>
#include <optional>
#include <utility>

#include "pkg/allocator/cpu_allocator.h"
#include "pkg/cri/interceptors.h"
#include "pkg/cri/known_methods.h"
#include "pkg/cri/relay.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/metrics/metrics.h"
#include "pkg/metrics/metrics_server.h"
#include "pkg/policy/constraints.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/notify.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {

namespace {

// For what is still in the dump's queue when the daemon ends.
constexpr std::chrono::seconds kDumpDeadline{5};

Status SetUpLogging(const LoggerConfig& config) {
  LogSettings settings;
  RESMGR_ASSIGN_OR_RETURN(settings.level, ParseLogLevel(config.level));
  if (!config.debug.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings.debug, SourceFilter::Parse(config.debug));
  }
  if (!config.source.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings.enabled, SourceFilter::Parse(config.source));
  }
  ConfigureLogging(std::move(settings));
  return OkStatus();
}

StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const Flags& flags) {
  Logger& log = GetLogger("message");
  return dump::Dumper::Create({.specs = flags.config.dump.specs,
                               .file = flags.config.dump.file,
                               .show_secrets = flags.dump_secrets},
                              [&log](bool warning, std::string_view line) {
                                warning ? log.Warn("{}", line) : log.Info("{}", line);
                              });
}

Relay::Options RelayOptions(const Flags& flags) {
  Relay::Options options;
  options.relay_socket = flags.relay_socket;
  options.runtime_socket = flags.runtime_socket;
  if (std::string socket = flags.ImageSocket(); !socket.empty()) {
    options.image_socket = std::move(socket);
  }
  return options;
}

// What exists only when somebody wants metrics.
struct Monitoring {
  Monitoring() : metrics(RESMGR_VERSION, KnownMethodPaths()) {}

  Metrics metrics;
  std::unique_ptr<MetricsServer> server;
};

StatusOr<std::unique_ptr<Monitoring>> StartMonitoring(const std::string& address) {
  if (address == "off" || address.empty()) return nullptr;
  auto monitoring = std::make_unique<Monitoring>();
  RESMGR_ASSIGN_OR_RETURN(monitoring->server, MetricsServer::Create(address, monitoring->metrics));
  return monitoring;
}

// What exists only when a policy places containers.
struct Brain {
  Brain(EventLoop& loop, h2::FlushQueue& flushes, const Flags& flags, Setup& setup)
      : runtime(loop, flushes, flags.runtime_socket),
        manager(loop, *setup.machine, std::move(setup.policy), runtime, nullptr, {}),
        interceptor(manager, [this] { return runtime.EnsureConnected(); }) {}

  void Start() {
    runtime.Start({.connected = [this] { manager.RuntimeConnected(); },
                   .disconnected = [this] { manager.RuntimeDisconnected(); }});
  }

  RuntimeConnection runtime;
  ResourceManager manager;
  ResourceInterceptor interceptor;
};

}  // namespace

StatusOr<Setup> Prepare(const Flags& flags, const PolicyRegistry& policies) {
  Setup setup;
  auto machine = LoadMachine(flags.topology);
  if (!machine.ok()) return Annotate(machine.status(), "-topology " + flags.topology);
  setup.machine = std::make_unique<const Machine>(*std::move(machine));

  const PolicyConfig& config = flags.config.policy;
  ConstraintOptions options;
  options.pick = [&setup](const CpuSet& from, int count) {
    return AllocateCpus(*setup.machine, from, {}, count, {});
  };
  RESMGR_ASSIGN_OR_RETURN(
      const PolicyCpus cpus,
      ResolveCpuConstraints(*setup.machine, config.available_cpus, config.reserved_cpus, options));
  if (config.active == kNullPolicy) return setup;
  const auto section = config.sections.find(config.active);
  RESMGR_ASSIGN_OR_RETURN(
      setup.policy,
      policies.Create(config.active,
                      {.machine = *setup.machine,
                       .available = cpus.available,
                       .reserved = cpus.reserved,
                       .section = section == config.sections.end() ? nullptr : &section->second}));
  return setup;
}

Status RunDaemon(const Flags& flags, Setup setup) {
  RESMGR_RETURN_IF_ERROR(SetUpLogging(flags.config.logger));
  Logger& log = GetLogger("cri-resmgr");
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<dump::Dumper> dumper, MakeDumper(flags));

  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<Monitoring> monitoring,
                          StartMonitoring(flags.metrics_address));

  EventLoop loop;
  h2::FlushQueue flushes(loop);
  std::optional<Brain> brain;
  if (setup.policy != nullptr) brain.emplace(loop, flushes, flags, setup);
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<Relay> relay,
                          Relay::Create(loop, flushes, RelayOptions(flags),
                                        {.interceptor = brain ? &brain->interceptor : nullptr,
                                         .dumper = dumper.get(),
                                         .metrics = monitoring ? &monitoring->metrics : nullptr}));
  if (brain) brain->Start();

  bool ending = false;
  const auto end = [&] {
    if (std::exchange(ending, true)) {
      loop.Stop();
      return;
    }
    log.Info("ending: waiting for the calls in flight; a second signal ends at once");
    if (const Status status = NotifyStopping(); !status.ok()) log.Warn("{}", Message(status));
    relay->Drain([&loop] { loop.Stop(); });
  };
  const auto term = loop.OnSignal(SIGTERM, end);
  const auto interrupt = loop.OnSignal(SIGINT, end);
  const auto hangup = loop.OnSignal(
      SIGHUP, [&log] { log.Info("SIGHUP: the configuration is read at start only"); });

  log.Info("ready: policy {} on {} CPUs, serving {}, runtime {}", flags.config.policy.active,
           setup.machine->online().size(), flags.relay_socket, flags.runtime_socket);
  if (const Status status = NotifyReady(); !status.ok()) log.Warn("{}", Message(status));
  loop.Run();
  if (!dumper->Close(kDumpDeadline)) log.Warn("the rest of the dump was given up");
  log.Info("ended");
  return OkStatus();
}

}  // namespace resmgr
