// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/run_node.h"

#include <array>
#include <chrono>
#include <csignal>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "pkg/audit/auditor.h"
#include "pkg/cpufile/cpu_files.h"
#include "pkg/cri/call_tap.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/metrics/metrics.h"
#include "pkg/node/agent_reports.h"
#include "pkg/node/brain_host.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/configurator.h"
#include "pkg/node/cpus_watch.h"
#include "pkg/node/hand_over.h"
#include "pkg/node/local_config.h"
#include "pkg/node/measured_policy.h"
#include "pkg/node/metrics_watch.h"
#include "pkg/node/node_publisher.h"
#include "pkg/node/optional_services.h"
#include "pkg/node/pod_event_watch.h"
#include "pkg/node/take_over.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/clock.h"
#include "pkg/state/claimed_file_system.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/notify.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {
namespace {

// How long the end may take beyond kDrainDeadline: what is still in the dump's queue, then what
// others wait for at most (the state a second, the log half of one, work off the loop and the
// metrics the rest).
constexpr std::chrono::seconds kDumpDeadline{4};
constexpr std::chrono::seconds kOtherDeadlines{4};
static_assert(kDrainDeadline + kDumpDeadline + kOtherDeadlines < std::chrono::seconds(30));

// Of the state. Never destroyed: a thread that hangs on its disk may use them until the process
// ends, and until then no other daemon may change them. The node goes on without: what runs is
// adopted from the runtime alone.
FileSystem& StateFiles(const NodeOptions& options) {
  const auto on_refusal = [](const Status& status) {
    const bool other = status.code() == StatusCode::kAlreadyExists;
    GetLogger("state").Warn("-relay-dir: {}; the state is not kept over restarts{}",
                            Message(status), other ? " before that one ends" : "");
  };
  static auto& all = *new std::list<ClaimedFileSystem>;
  return all.emplace_back(RealFileSystem(), options.StateDirectory(), on_refusal);
}

StateStore OpenState(const NodeOptions& options, const Setup& setup) {
  // A disk that does not answer is not waited for twice.
  return {StateFiles(options),
          options.StateDirectory(),
          setup.machine->Fingerprint(),
          [](std::string_view line) { GetLogger("state").Warn("{}", line); },
          options.CallsFile(),
          setup.disk_answers ? StateStore::kPatience : std::chrono::milliseconds(0)};
}

// A file that a delivered configuration may not name is left out, and the rest holds.
StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const NodeOptions& node, const Setup& setup,
                                                   Metrics* metrics) {
  Logger& log = GetLogger("message");
  dump::Dumper::Options options = DumpOptions(setup.config.dump, node.overrides, node.dump_secrets,
                                              setup.delivered, node.dump_directory);
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

// Before anything is taken over: MakeDumper fails for nothing else.
Status CheckDump(const NodeOptions& node, const Setup& setup) {
  if (setup.delivered) return OkStatus();
  return dump::Dumper::Read(DumpOptions(setup.config.dump, node.overrides, node.dump_secrets, false,
                                        node.dump_directory))
      .status();
}

// What is counted where metrics are asked for, from before there is a loop until after its end.
struct Counted {
  explicit Counted(const NodeOptions& options)
      : metrics(options.version, options.door.counted_methods), page(options.page) {}

  ServedMetrics Served() const {
    return {{metrics.collectable(), node.collectable()}, health, page};
  }

  Metrics metrics;
  NodeMetrics node;
  const std::shared_ptr<Health> health = std::make_shared<Health>();
  const std::shared_ptr<NodePage> page;
  std::unique_ptr<MetricsWatch> watch;
};

// nullptr where no metrics are asked for.
std::unique_ptr<Counted> MakeCounted(const NodeOptions& options) {
  if (options.metrics_address.empty()) return nullptr;
  return std::make_unique<Counted>(options);
}

// What is told to the agent about the node, beside its policy.
struct Reported {
  Reported(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket,
           const Machine& machine, AgentReports::Options options)
      : reports(loop, flushes, socket, std::move(options)),
        cpus(loop, machine, [this](std::string text) { reports.ShowCpus(std::move(text)); }),
        events([this](PodEvent event) { reports.Add(std::move(event)); }) {}
  Reported(const Reported&) = delete;
  Reported& operator=(const Reported&) = delete;

  AgentReports reports;
  CpusWatch cpus;
  PodEventWatch events;
};

// nullptr where no agent is to be called.
std::unique_ptr<Reported> MakeReported(const NodeOptions& options, EventLoop& loop,
                                       h2::FlushQueue& flushes, const Machine& machine,
                                       Counted* counted) {
  if (options.agent_socket.empty()) return nullptr;
  AgentReports::Options reports;
  if (counted != nullptr) {
    reports.on_events = [&node = counted->node](size_t taken, size_t lost) {
      node.PodEvents(taken, lost);
    };
  }
  return std::make_unique<Reported>(loop, flushes, options.agent_socket, machine,
                                    std::move(reports));
}

BrainHost::Options HostOptions(BrainHost::Options options, const Setup& setup, Counted* counted) {
  options.manager = {.start_failure = setup.config.policy.start_failure,
                     .runtimes = setup.config.runtimes};
  if (counted == nullptr) return options;
  counted->watch = std::make_unique<MetricsWatch>(options.loop, options.machine, counted->node,
                                                  *counted->health);
  options.manager.metrics = &counted->metrics;
  options.manager.observer = counted->watch.get();
  options.wrap = [&node = counted->node](std::unique_ptr<Policy> policy) {
    return Measured(std::move(policy), node);
  };
  return options;
}

void Count(const AuditReport* report, NodeMetrics& metrics) {
  NodeMetrics::Audit audit{.failed = report == nullptr};
  if (report != nullptr) {
    audit.drifted = report->drifted;
    for (const AuditReport::Finding& finding : report->findings) {
      audit.drifts += finding.drifts.size();
      if (finding.sent_again) ++audit.repaired;
    }
  }
  metrics.Audited(audit);
}

Auditor::Options AuditorOptions(EventLoop& loop, BrainHost& host, const Pipeline& pipeline,
                                Counted* counted) {
  Auditor::Options options{
      .loop = loop,
      .manager = [&host] { return host.manager(); },
      .numbers_are_ours = [&pipeline] { return !pipeline.OthersSetNumbers(); }};
  if (counted != nullptr)
    options.told = [counted](const AuditReport* report) { Count(report, counted->node); };
  return options;
}

CpuFiles::Options CpuFilesOptions(const NodeOptions& options, EventLoop& loop, Pipeline& pipeline,
                                  const Setup& setup) {
  return {.loop = loop,
          .pipeline = pipeline,
          .directory = options.cpu_file_directory,
          .cpus = setup.machine->online(),
          .mems = setup.machine->node_ids(),
          .pinning = PinningRule(&setup.config.runtimes)};
}

// The service manager ends a daemon whose loop stands still. Nothing where it does not watch us.
EventLoop::HandlePtr FeedWatchdog(EventLoop& loop) {
  const auto period = WatchdogPeriod();
  if (!period) return nullptr;
  return loop.Every(std::chrono::duration_cast<std::chrono::milliseconds>(*period) / 2,
                    [] { [[maybe_unused]] const Status fed = NotifyWatchdog(); });
}

std::shared_ptr<const ConfigReader> MakeReader(const NodeOptions& options,
                                               std::shared_ptr<const Machine> machine) {
  return std::make_shared<const ConfigReader>(
      ConfigReader::Options{.machine = std::move(machine),
                            .policies = options.policies,
                            .overrides = options.overrides,
                            .dump_secrets = options.dump_secrets,
                            .dump_directory = options.dump_directory,
                            .asks_hook_servers = options.door.asks_hook_servers,
                            .hooks = options.config.hooks,
                            .nri = options.config.nri,
                            .runtimes = options.config.runtimes});
}

// nullptr where no agent is to be called.
std::unique_ptr<NodePublisher> MakePublisher(const NodeOptions& options, EventLoop& loop,
                                             h2::FlushQueue& flushes) {
  if (options.agent_socket.empty()) return nullptr;
  return std::make_unique<NodePublisher>(loop, flushes, options.agent_socket);
}

void Publish(NodePublisher* publisher, const Configurator& configurator) {
  if (publisher == nullptr) return;
  publisher->Show({.policy = configurator.current().policy.active,
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

std::list<OptionalSocket> ServeAll(const NodeOptions& options, const NodeView& view,
                                   h2::FlushQueue& flushes) {
  std::list<OptionalSocket> sockets;
  for (const NodeService& service : options.services)
    sockets.emplace_back(view.loop, flushes, service.socket, service.methods(view));
  return sockets;
}

// The page has data while this exists.
class OpenPage {
 public:
  OpenPage(NodePage* page, const NodeView& view) : page_(page) {
    if (page_ != nullptr) page_->Open(view);
  }
  OpenPage(const OpenPage&) = delete;
  OpenPage& operator=(const OpenPage&) = delete;
  ~OpenPage() {
    if (page_ != nullptr) page_->Close();
  }

 private:
  NodePage* const page_;
};

// The loop ends when the calls in flight are over.
void EndNode(EventLoop& loop, FrontDoor& door) {
  if (const Status status = NotifyStopping(); !status.ok())
    GetLogger("cri-resmgr").Warn("{}", Message(status));
  door.Drain([&loop] { loop.Stop(); });
}

// For as long as the handles are kept. SIGTERM and SIGINT end the daemon; SIGHUP and SIGUSR1 are
// for the tasks.
std::array<EventLoop::HandlePtr, 4> HandleSignals(EventLoop& loop, FrontDoor& door,
                                                  HandOver& hand_over, EventLoop::Task reload,
                                                  EventLoop::Task debug) {
  const auto end = [&loop, &door, &hand_over,
                    ending = std::make_shared<bool>(false)](pid_t sender) {
    Logger& log = GetLogger("cri-resmgr");
    if (std::exchange(*ending, true)) {
      log.Info("a second signal, of process {}: ending at once", sender);
      loop.Stop();
      return;
    }
    log.Info(
        "ending on a signal of process {}: waiting for the calls in flight; a second signal ends "
        "at once",
        sender);
    hand_over.Stop();
    EndNode(loop, door);
  };
  return {loop.OnSignal(SIGTERM, end), loop.OnSignal(SIGINT, end),
          loop.OnSignal(SIGHUP, [reload = std::move(reload)](pid_t) { reload(); }),
          loop.OnSignal(SIGUSR1, [debug = std::move(debug)](pid_t) { debug(); })};
}

// A daemon that asks for the sockets of this one is served as long as this exists. Where the door
// has none there is nothing to hand over.
HandOver::Options HandOverOptions(const NodeOptions& options, EventLoop& loop, FrontDoor& door) {
  HandOver::Options all{.loop = loop, .door = door, .version = options.version};
  if (!options.door.sockets.empty()) all.socket = HandOver::SocketOf(options.relay_socket);
  if (HasServiceManager()) {
    all.refusal =
        "the service manager would start it again; have that restart it, and hold its socket "
        "meanwhile (cri-resmgr.socket)";
  }
  all.end = [&loop, &door] { EndNode(loop, door); };
  return all;
}

// The front door, with its sockets; where the options say so they are those of the daemon that
// serves now, which has ended then. Otherwise that one goes on as if nothing had happened.
StatusOr<std::unique_ptr<FrontDoor>> OpenDoor(const NodeOptions& options,
                                              const DoorContext& context) {
  if (!options.take_over) return options.door.create(context);
  const std::string socket = HandOver::SocketOf(options.relay_socket);
  auto former = TakeOver::Begin({.socket = socket, .version = options.version});
  if (!former.ok()) return Unavailable("-take-over: {}", Message(former.status()));
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<FrontDoor> door, options.door.create(context));
  if (*former == nullptr) return door;
  std::vector<std::string> paths = options.door.sockets;
  paths.push_back(socket);
  for (const NodeService& service : options.services)
    paths.push_back(service.socket);
  const Status finished = (*former)->Finish(paths);
  if (!finished.ok()) return Unavailable("-take-over: {}", Message(finished));
  return door;
}

// With a logger of its own, so that programs that wait for the line see it whatever -logger-level
// says.
void AnnounceReady(const NodeOptions& options, const Setup& setup) {
  Logger log("cri-resmgr");
  log.Info("ready: policy {} on {} CPUs, {}", setup.config.policy.active,
           setup.machine->online().size(), options.door.description);
  if (const Status status = NotifyReady(); !status.ok()) log.Warn("{}", Message(status));
}

// Requests of the door hold on to the brain, and the brain to the state: so they end in this order.
class StopAtEnd {
 public:
  explicit StopAtEnd(FrontDoor& door) : door_(door) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { door_.Stop(); }

 private:
  FrontDoor& door_;
};

}  // namespace

Status RunNode(const NodeOptions& options, Setup setup) {
  const LogThread log_thread;
  RESMGR_RETURN_IF_ERROR(ApplyLogging(setup.config.logger));
  Logger& log = GetLogger("cri-resmgr");
  for (const std::string& warning : setup.warnings)
    GetLogger("config").Warn("{}", warning);

  const std::unique_ptr<Counted> counted = MakeCounted(options);
  Metrics* const metrics = counted == nullptr ? nullptr : &counted->metrics;
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  LoopClock clock(loop);
  Pipeline pipeline(clock, metrics);
  HintFinder hints(loop, {});
  RESMGR_RETURN_IF_ERROR(CheckDump(options, setup));
  // Before anything is touched on disk: the socket tells that no other instance is at work there.
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<FrontDoor> door,
                          OpenDoor(options, {loop, flushes, pipeline, metrics}));
  // Ends when all that is kept is written: a daemon that goes on in this one's place reads it then.
  std::optional<HandOver> hand_over;
  RESMGR_ASSIGN_OR_RETURN(const std::unique_ptr<dump::Dumper> dumper,
                          MakeDumper(options, setup, metrics));
  const OptionalMetrics metrics_server(loop, options.metrics_address,
                                       counted == nullptr ? ServedMetrics() : counted->Served());
  StateStore state = OpenState(options, setup);
  CpuFiles cpu_files(CpuFilesOptions(options, loop, pipeline, setup));
  const std::unique_ptr<Reported> reported =
      MakeReported(options, loop, flushes, *setup.machine, counted.get());
  BrainHost host(HostOptions({.loop = loop,
                              .machine = *setup.machine,
                              .door = *door,
                              .pipeline = pipeline,
                              .hints = hints,
                              .state = &state},
                             setup, counted.get()));
  host.Observe(cpu_files);
  if (reported != nullptr) {
    host.Observe(reported->cpus);
    host.Observe(reported->events);
  }
  const StopAtEnd stop(*door);
  door->Configure(setup.config);
  door->Remember(state);
  door->Start(*dumper);
  host.Start(std::move(setup.policy));
  if (reported != nullptr) reported->cpus.Follow(host);

  const std::unique_ptr<NodePublisher> publisher = MakePublisher(options, loop, flushes);
  Auditor auditor(AuditorOptions(loop, host, pipeline, counted.get()));
  const auto publish = [&](const Configurator& now) {
    door->Configure(now.current());
    cpu_files.Configure(now.current().cpu_files);
    auditor.Configure(now.current().audit);
    Publish(publisher.get(), now);
    if (reported != nullptr) reported->cpus.NoteConfiguration();
    if (counted != nullptr) counted->watch->NoteConfiguration();
  };
  const auto count_refused = [&counted] {
    if (counted != nullptr) counted->watch->NoteRefusedConfiguration();
  };
  Configurator configurator({.loop = loop,
                             .reader = MakeReader(options, setup.machine),
                             .host = host,
                             .dumper = *dumper,
                             .directory = options.directory,
                             .forced = options.forced,
                             .changed = publish,
                             .refused = count_refused},
                            setup.config, setup.config_source);
  publish(configurator);
  OffLoop late(loop, "late-config", std::chrono::milliseconds(0));
  // What was delivered to the daemon before while this one read what is kept.
  const bool taken_over = options.take_over && !options.forced;
  if (!setup.disk_answers || taken_over) RestoreLater(options, late, configurator);
  const NodeView view{
      .loop = loop,
      .version = options.version,
      .machine = *setup.machine,
      .policies = options.policies,
      .host = host,
      .configurator = configurator,
      .pipeline = pipeline,
      .auditor = auditor,
      .relay_socket = options.relay_socket,
      .runtime_socket = options.runtime_socket,
      .runtime_state = [&host] { return host.RuntimeState(); },
      .state_saved = [&state] { return state.Saved(); },
      .plugins = [&door] { return door->plugins(); },
      .describe_runtimes = [&door](auto done) { door->DescribeRuntimes(std::move(done)); },
      .seen = [&door] { return door->seen(); },
      .dump_lost = [&dumper] { return dumper->lost_calls(); }};
  const auto sockets = ServeAll(options, view, flushes);
  const OpenPage page(options.page.get(), view);
  const EventLoop::HandlePtr watchdog = FeedWatchdog(loop);
  const EventLoop::HandlePtr watching =
      counted == nullptr
          ? nullptr
          : counted->watch->Follow(
                {.host = host,
                 .state_saved = [&state] { return state.Saved(); },
                 .state_written = [&state] { return state.written(); },
                 .policy = [&configurator] { return configurator.current().policy.active; },
                 .cpu_files =
                     [&cpu_files] { return std::pair(cpu_files.size(), cpu_files.behind()); }});
  hand_over.emplace(HandOverOptions(options, loop, *door));
  const auto signals = HandleSignals(
      loop, *door, *hand_over, [&] { Reload(options, configurator); },
      [&configurator, on = false]() mutable { ToggleDebug(on = !on, configurator); });
  AnnounceReady(options, setup);
  loop.Run();
  if (!dumper->Close(kDumpDeadline)) log.Warn("the rest of the dump was given up");
  log.Info("ended");
  return OkStatus();
}

}  // namespace resmgr
