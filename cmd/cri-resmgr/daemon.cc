// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/daemon.h"

#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "pkg/admin/admin_service.h"
#include "pkg/admin/config_service.h"
#include "pkg/config/problems.h"
#include "pkg/cri/call_tap.h"
#include "pkg/cri/known_methods.h"
#include "pkg/cri/relay.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/metrics/metrics.h"
#include "pkg/node/brain_host.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/configurator.h"
#include "pkg/node/delivered_config.h"
#include "pkg/node/node_publisher.h"
#include "pkg/node/optional_services.h"
#include "pkg/node/policy_setup.h"
#include "pkg/state/claimed_file_system.h"
#include "pkg/state/record_log.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/answer_within.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/file_limit.h"
#include "pkg/sys/files.h"
#include "pkg/sys/notify.h"
#include "pkg/sys/off_loop.h"
#include "pkg/sys/unix_socket.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {

namespace {

// How long the end may take: the calls in flight, then what is still in the dump's queue, then what
// others wait for at most (the state a second, the log half of one, work off the loop and the
// metrics the rest). systemd kills a daemon that takes longer than the unit's TimeoutStopSec, 30 s.
constexpr std::chrono::seconds kDrainDeadline{20};
constexpr std::chrono::seconds kDumpDeadline{4};
constexpr std::chrono::seconds kOtherDeadlines{4};
// How long the start waits for what an earlier run kept.
constexpr std::chrono::seconds kDiskPatience{5};
static_assert(kDrainDeadline + kDumpDeadline + kOtherDeadlines < std::chrono::seconds(30));

std::string StateDirectory(const Flags& flags) {
  return flags.relay_dir + "/state";
}

// Beside the socket: in memory, and there as long as calls can be under way.
std::string CallsFile(const Flags& flags) {
  return flags.relay_socket + ".calls";
}

// Of the state. Never destroyed: a thread that hangs on its disk may use them until the process
// ends, and until then no other daemon may change them. The node goes on without: what runs is
// adopted from the runtime alone.
FileSystem& StateFiles(const Flags& flags) {
  const auto on_refusal = [](const Status& status) {
    const bool other = status.code() == StatusCode::kAlreadyExists;
    GetLogger("state").Warn("-relay-dir: {}; the state is not kept over restarts{}",
                            Message(status), other ? " before that one ends" : "");
  };
  static FileSystem& files =
      *new ClaimedFileSystem(RealFileSystem(), StateDirectory(flags), on_refusal);
  return files;
}

// A file that a delivered configuration may not name is left out, and the rest holds.
StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const Flags& flags, const Setup& setup,
                                                   Metrics* metrics) {
  Logger& log = GetLogger("message");
  dump::Dumper::Options options =
      DumpOptions(setup.config.dump, flags.overrides, flags.dump_secrets, setup.delivered,
                  flags.DumpDirectory());
  const Status allowed = dump::Dumper::Read(options).status();
  if (setup.delivered && !allowed.ok()) {
    log.Warn("nothing is dumped: {}", Message(allowed));
    options.specs.clear();
    options.file.clear();
  }
  options.on_lost = [metrics] {
    if (metrics != nullptr) metrics->Count(Metrics::Event::kDumpDropped);
  };
  options.decompress = &CallTap::Decompress;
  return dump::Dumper::Create(std::move(options), [&log](bool warning, std::string_view line) {
    warning ? log.Warn("{}", line) : log.Info("{}", line);
  });
}

// `files`: how many may be open.
Relay::Options RelayOptions(const Flags& flags, size_t files) {
  Relay::Options options;
  options.max_clients = Relay::ClientsWith(files);
  options.runtime_socket = flags.runtime_socket;
  options.drain_timeout = kDrainDeadline;
  if (std::string socket = flags.ImageSocket(); !socket.empty()) {
    options.image_socket = std::move(socket);
  }
  return options;
}

// nullptr where nobody wants metrics.
std::shared_ptr<Metrics> MakeMetrics(const Flags& flags) {
  if (flags.MetricsAddress().empty()) return nullptr;
  return std::make_shared<Metrics>(RESMGR_VERSION, KnownMethodPaths());
}

// The service manager ends a daemon whose loop stands still. Nothing where it does not watch us.
EventLoop::HandlePtr FeedWatchdog(EventLoop& loop) {
  const auto period = WatchdogPeriod();
  if (!period) return nullptr;
  return loop.Every(std::chrono::duration_cast<std::chrono::milliseconds>(*period) / 2,
                    [] { [[maybe_unused]] const Status fed = NotifyWatchdog(); });
}

// Where a file or the command line is the source.
std::string LocalSource(const Flags& flags) {
  const std::string file = flags.ConfigFile();
  return file.empty() ? "the command line" : file;
}

// With the configuration that was delivered to an earlier run, if it still fits.
std::optional<Setup> PrepareKept(std::optional<KeptConfig> kept, const PolicyRegistry& policies,
                                 const Machine& machine) {
  if (!kept) return std::nullopt;
  Setup setup;
  if (kept->config.ok()) {
    StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(kept->config->policy, machine, policies);
    if (policy.ok()) {
      setup.policy = *std::move(policy);
    } else {
      kept->config = policy.status();
    }
  }
  if (!kept->config.ok()) {
    GetLogger("config").Warn("the configuration from {} of an earlier run is not used: {}",
                             kept->source, OneLine(Message(kept->config.status())));
    return std::nullopt;
  }
  setup.config = *std::move(kept->config);
  setup.config_source = std::move(kept->source);
  setup.delivered = true;
  return setup;
}

// Puts the configuration of an earlier run in force when its disk answers, unless a newer one was
// delivered until then. `off_loop` ends before the configurator does.
void RestoreLater(const Flags& flags, OffLoop& off_loop, Configurator& configurator) {
  const Status begun =
      off_loop.Run([directory = flags.relay_dir, &configurator]() -> EventLoop::Task {
        auto kept = std::make_shared<StatusOr<std::optional<DeliveredConfig>>>(
            LoadDeliveredConfig(directory));
        return [kept, &configurator] {
          if (!kept->ok()) {
            GetLogger("config").Warn("{}", Message(kept->status()));
          } else if (kept->value().has_value()) {
            configurator.Restore(**std::move(*kept));
          }
        };
      });
  if (!begun.ok()) GetLogger("config").Warn("{}", Message(begun));
}

// Reads the configuration file again, as SIGHUP asks.
void Reload(const Flags& flags, const PolicyRegistry& policies, Configurator& configurator) {
  Logger& log = GetLogger("config");
  if (flags.ConfigFile().empty()) {
    log.Info("SIGHUP: there is no configuration file to read again");
    return;
  }
  if (configurator.source() != flags.ConfigFile()) {
    log.Info("SIGHUP: the configuration from {} is in force, {} is not read", configurator.source(),
             flags.ConfigFile());
    return;
  }
  // Copies, since a disk that hangs may hold them for longer than the daemon runs.
  const auto checked = std::make_shared<const PolicyRegistry>(policies);
  configurator.Reload(
      flags.ConfigFile(), [flags, checked] { return ReadConfigAgain(flags, ChecksWith(*checked)); },
      [&log](const Status& status) {
        if (status.ok()) return;
        log.Warn("SIGHUP: everything stays as it was: {}", OneLine(Message(status)));
      });
}

std::shared_ptr<const ConfigReader> MakeReader(const Flags& flags, const PolicyRegistry& policies,
                                               std::shared_ptr<const Machine> machine) {
  return std::make_shared<const ConfigReader>(
      ConfigReader::Options{.machine = std::move(machine),
                            .policies = policies,
                            .overrides = flags.overrides,
                            .dump_secrets = flags.dump_secrets,
                            .dump_directory = flags.DumpDirectory()});
}

// nullptr where no agent is to be called.
std::unique_ptr<NodePublisher> MakeNodePublisher(const Flags& flags, EventLoop& loop,
                                                 h2::FlushQueue& flushes) {
  if (flags.AgentSocket().empty()) return nullptr;
  return std::make_unique<NodePublisher>(loop, flushes, flags.AgentSocket());
}

void Show(NodePublisher* node, const Configurator& configurator) {
  if (node == nullptr) return;
  node->Show({.policy = configurator.current().policy.active,
              .source = configurator.source(),
              .losses = configurator.losses()});
}

// Every debug message of every source, or again what the configuration says.
void ToggleDebug(bool on, const Configurator& configurator) {
  if (on) {
    SetLogLevel(LogLevel::kDebug);
  } else if (const Status status = ApplyLogging(configurator.current().logger); !status.ok()) {
    GetLogger("config").Warn("{}", Message(status));
  }
  GetLogger("cri-resmgr").Info("SIGUSR1: debug messages are {}", on ? "on" : "as configured");
}

// For as long as the handles are kept. SIGTERM and SIGINT end the loop when the calls in flight are
// over; SIGHUP and SIGUSR1 are for the tasks.
std::array<EventLoop::HandlePtr, 4> HandleSignals(EventLoop& loop, Relay& relay,
                                                  EventLoop::Task reload, EventLoop::Task debug) {
  const auto end = [&loop, &relay, ending = std::make_shared<bool>(false)] {
    if (std::exchange(*ending, true)) {
      loop.Stop();
      return;
    }
    Logger& log = GetLogger("cri-resmgr");
    log.Info("ending: waiting for the calls in flight; a second signal ends at once");
    if (const Status status = NotifyStopping(); !status.ok()) log.Warn("{}", Message(status));
    relay.Drain([&loop] { loop.Stop(); });
  };
  return {loop.OnSignal(SIGTERM, end), loop.OnSignal(SIGINT, end),
          loop.OnSignal(SIGHUP, std::move(reload)), loop.OnSignal(SIGUSR1, std::move(debug))};
}

// With a logger of its own, so that whoever waits for the line sees it whatever -logger-level says.
void AnnounceReady(const Flags& flags, const Setup& setup) {
  Logger log("cri-resmgr");
  log.Info("ready: policy {} on {} CPUs, serving {}, runtime {}", setup.config.policy.active,
           setup.machine->online().size(), flags.relay_socket, flags.runtime_socket);
  if (const Status status = NotifyReady(); !status.ok()) log.Warn("{}", Message(status));
}

BrainHost::Options HostOptions(const Flags& flags, const Setup& setup, EventLoop& loop,
                               h2::FlushQueue& flushes, StateStore& state, Metrics* metrics) {
  return {.loop = loop,
          .flushes = flushes,
          .machine = *setup.machine,
          .runtime_socket = flags.runtime_socket,
          .state = &state,
          .manager = {.start_failure = setup.config.policy.start_failure, .metrics = metrics}};
}

}  // namespace

std::optional<KeptConfig> LoadKeptConfig(const Flags& flags, const PolicyRegistry& policies) {
  if (flags.forced) return std::nullopt;
  using Source = StatusOr<std::optional<DeliveredConfig>>;
  auto answer = AnswerWithin<Source>(kDiskPatience, "kept-config", [directory = flags.relay_dir] {
    return LoadDeliveredConfig(directory);
  });
  if (!answer) {
    return KeptConfig{.source = flags.relay_dir,
                      .config = DeadlineExceeded("its disk does not answer")};
  }
  Source& kept = *answer;
  if (!kept.ok()) GetLogger("config").Warn("{}", Message(kept.status()));
  if (!kept.ok() || !kept->has_value()) return std::nullopt;
  KeptConfig loaded{.source = (*kept)->name, .config = Parse(**kept, ChecksWith(policies))};
  if (!loaded.config.ok()) return loaded;
  const PolicyConfig& policy = loaded.config->policy;
  if (flags.overrides.policy && !policy.active_origin.empty() &&
      policy.active != *flags.overrides.policy) {
    GetLogger("config").Warn("{}: \"{}\" has no effect, since -policy says {}",
                             policy.active_origin, policy.active, *flags.overrides.policy);
  }
  flags.overrides.ApplyTo(*loaded.config);
  return loaded;
}

StatusOr<Setup> Prepare(const Flags& flags, const PolicyRegistry& policies) {
  auto machine = LoadMachine(flags.topology);
  if (!machine.ok()) return Annotate(machine.status(), "-topology " + flags.topology);
  auto owned = std::make_shared<const Machine>(*std::move(machine));
  Setup setup;
  if (!flags.check_config) {
    std::optional<KeptConfig> found = LoadKeptConfig(flags, policies);
    setup.disk_answers = !found || found->config.status().code() != StatusCode::kDeadlineExceeded;
    if (std::optional<Setup> kept = PrepareKept(std::move(found), policies, *owned)) {
      kept->warnings = ConfigWarnings(kept->config, *owned, policies);
      kept->machine = std::move(owned);
      return *std::move(kept);
    }
  }
  setup.config = flags.config;
  setup.config_source = LocalSource(flags);
  RESMGR_ASSIGN_OR_RETURN(setup.policy, MakePolicy(flags.config.policy, *owned, policies));
  setup.warnings = ConfigWarnings(setup.config, *owned, policies);
  if (flags.check_config) {
    RESMGR_ASSIGN_OR_RETURN(
        const dump::Dumper::Settings dump,
        dump::Dumper::Read(DumpOptions(setup.config.dump, flags.overrides, false, false, "")));
    const Status probed = dump::Dumper::Probe(dump);
    if (!probed.ok()) setup.warnings.push_back(fmt::format("dump: {}", Message(probed)));
  }
  setup.machine = std::move(owned);
  return setup;
}

Status RunDaemon(const Flags& flags, const PolicyRegistry& policies, Setup setup) {
  const LogThread log_thread;
  RESMGR_RETURN_IF_ERROR(ApplyLogging(setup.config.logger));
  Logger& log = GetLogger("cri-resmgr");
  for (const std::string& warning : setup.warnings)
    GetLogger("config").Warn("{}", warning);
  const std::shared_ptr<Metrics> metrics = MakeMetrics(flags);
  // Before anything is touched on disk: the socket tells that no other instance is at work there.
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(flags.relay_socket));
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<dump::Dumper> dumper,
                          MakeDumper(flags, setup, metrics.get()));

  EventLoop loop;
  h2::FlushQueue flushes(loop);
  const OptionalMetrics metrics_server(loop, flags.MetricsAddress(), metrics);
  // Calls of the relay hold on to the brain, and the brain to the state: so they end in this order.
  std::optional<StateStore> state;
  std::optional<BrainHost> host;
  Relay relay(loop, flushes, std::move(listener), RelayOptions(flags, RaiseFileLimit()),
              {.interceptor = nullptr, .dumper = dumper.get(), .metrics = metrics.get()});
  state.emplace(
      StateFiles(flags), StateDirectory(flags), setup.machine->Fingerprint(),
      [](std::string_view line) { GetLogger("state").Warn("{}", line); }, CallsFile(flags),
      // The same disk is not waited for twice.
      setup.disk_answers ? StateStore::kPatience : std::chrono::milliseconds(0));
  host.emplace(HostOptions(flags, setup, loop, flushes, *state, metrics.get()));
  host->Start(std::move(setup.policy));
  host->Serve(relay);

  const std::unique_ptr<NodePublisher> node = MakeNodePublisher(flags, loop, flushes);
  const auto show = [&node](const Configurator& configurator) { Show(node.get(), configurator); };
  Configurator configurator({.loop = loop,
                             .reader = MakeReader(flags, policies, setup.machine),
                             .host = *host,
                             .dumper = *dumper,
                             .directory = flags.relay_dir,
                             .forced = flags.forced,
                             .changed = show},
                            setup.config, setup.config_source);
  show(configurator);
  OffLoop late(loop, "late-config", std::chrono::milliseconds(0));
  if (!setup.disk_answers) RestoreLater(flags, late, configurator);
  AdminService admin({.loop = loop,
                      .version = RESMGR_VERSION,
                      .machine = *setup.machine,
                      .policies = policies,
                      .host = *host,
                      .configurator = configurator,
                      .relay_socket = flags.relay_socket,
                      .runtime_socket = flags.runtime_socket,
                      .runtime_state = [&host] { return host->RuntimeState(); },
                      .state_saved = [&state] { return state->Saved(); },
                      .dump_lost = [&dumper] { return dumper->lost_calls(); }});
  const OptionalSocket admin_server(loop, flushes, flags.AdminSocket(), admin.Methods());
  const OptionalSocket config_server(loop, flushes, flags.ConfigSocket(),
                                     ConfigService(configurator));
  const EventLoop::HandlePtr watchdog = FeedWatchdog(loop);

  const auto signals = HandleSignals(
      loop, relay, [&] { Reload(flags, policies, configurator); },
      [&configurator, on = false]() mutable { ToggleDebug(on = !on, configurator); });
  AnnounceReady(flags, setup);
  loop.Run();
  if (!dumper->Close(kDumpDeadline)) log.Warn("the rest of the dump was given up");
  log.Info("ended");
  return OkStatus();
}

Status Reset(const Flags& flags) {
  if (ConnectUnix(flags.relay_socket).ok()) {
    return FailedPrecondition("an instance serves {}: stop it first", flags.relay_socket);
  }
  // One that ends has closed its socket, and still writes.
  const auto claim = ClaimDirectory(StateDirectory(flags));
  if (claim.status().code() == StatusCode::kAlreadyExists) {
    return FailedPrecondition("{}: wait until it has ended", Message(claim.status()));
  }
  if (!claim.ok() && claim.status().code() != StatusCode::kNotFound) return claim.status();
  if (flags.reset_policy) {
    RESMGR_RETURN_IF_ERROR(RecordLog::Reset(RealFileSystem(), StateDirectory(flags)));
  }
  if (flags.reset_config) RESMGR_RETURN_IF_ERROR(ForgetDeliveredConfig(flags.relay_dir));
  return OkStatus();
}

}  // namespace resmgr
