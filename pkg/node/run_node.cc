// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/run_node.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "pkg/audit/auditor.h"
#include "pkg/audit/cgroup_requests.h"
#include "pkg/audit/creation_watch.h"
#include "pkg/base/amount_text.h"
#include "pkg/classes/host_classes.h"
#include "pkg/cpufile/cpu_files.h"
#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/kubelet/pod_resources.h"
#include "pkg/log/log.h"
#include "pkg/node/brain_host.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/configurator.h"
#include "pkg/node/dra_host.h"
#include "pkg/node/hand_over.h"
#include "pkg/node/kubelet_watch.h"
#include "pkg/node/machine_watch.h"
#include "pkg/node/metrics_watch.h"
#include "pkg/node/node_problems.h"
#include "pkg/node/node_signals.h"
#include "pkg/node/optional_services.h"
#include "pkg/node/policy_setup.h"
#include "pkg/node/problems_watch.h"
#include "pkg/node/refusals.h"
#include "pkg/node/reported.h"
#include "pkg/node/usage_watch.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/notify.h"
#include "pkg/sys/off_loop.h"
#include "pkg/usage/use_rebalancer.h"

namespace resmgr {
namespace {

// How long the daemon's end may take beyond kDrainDeadline: first for the queue of the dump, then
// for others (a second for the state, half of one for the log, the rest for work off the loop and
// for metrics).
constexpr std::chrono::seconds kDumpDeadline{4};
constexpr std::chrono::seconds kOtherDeadlines{4};
static_assert(kDrainDeadline + kDumpDeadline + kOtherDeadlines < std::chrono::seconds(30));

CpuFiles::Options CpuFilesOptions(const NodeOptions& options, EventLoop& loop, Pipeline& pipeline,
                                  const Setup& setup) {
  return {.loop = loop,
          .pipeline = pipeline,
          .directory = options.cpu_file_directory,
          .cpus = setup.machine->allowed(),
          .mems = setup.machine->allowed_nodes(),
          .pinning = PinningRule(&setup.config.runtimes)};
}

// Reports to the service manager while the loop runs, so that it can end a daemon whose loop hangs.
// nullptr if it does not watch this daemon.
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

// Runs a function when it is destroyed.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> run) : run_(std::move(run)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { run_(); }

 private:
  const std::function<void()> run_;
};

// All parts of a daemon. The last members are destroyed first.
class RunningNode {
 public:
  RunningNode(const NodeOptions& options, Setup setup)
      : options_(options),
        setup_(std::move(setup)),
        counted_(options.metrics_address.empty() ? nullptr : std::make_unique<Counted>(options)),
        pod_resources_({.loop = loop_,
                        .server = {.socket = options.pod_resources_socket,
                                   .nodes = setup_.machine->node_ids()}}) {}
  RunningNode(const RunningNode&) = delete;
  RunningNode& operator=(const RunningNode&) = delete;

  // Does everything that can fail. The front door's sockets come first: having them shows that no
  // other daemon uses this disk.
  Status Open();
  // Runs until a signal, or a daemon that takes over, ends it.
  void Run();

 private:
  Metrics* metrics() { return counted_ == nullptr ? nullptr : &counted_->metrics; }
  void StartBrain();
  void MakeBrain();
  // Makes what follows the brain's decisions, too.
  void ObserveBrain();
  void StartConfiguration();
  void StartSampling();
  // Samples are taken even if no client asks: for metrics, for rebalances by use, and for a policy
  // that follows use.
  void NoteSampling(const UsageConfig& config) {
    const ResourceManager* const manager = host_->manager();
    const bool follows = manager != nullptr && manager->policy().FollowsUse();
    usage_->SetAlways(counted_ != nullptr || config.rebalance_every.count() > 0 || follows);
  }
  void NoteConfiguration(const Configurator& now);
  void Serve();
  std::vector<Problem> MachineProblems() const;
  std::vector<Problem> OwnProblems() const;
  void WatchProblems(const NodeView& view);
  CpuSet Offline() const { return online_ ? online_->offline() : CpuSet(); }
  EventLoop::HandlePtr WatchForMetrics();

  const NodeOptions& options_;
  Setup setup_;
  const std::unique_ptr<Counted> counted_;
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_, metrics()};
  HintFinder hints_{loop_, {}};
  PodResources pod_resources_;
  std::unique_ptr<FrontDoor> door_;
  // Destroyed after everything is saved, since the daemon that takes over reads it then.
  std::optional<HandOver> hand_over_;
  std::unique_ptr<dump::Dumper> dumper_;
  std::optional<OptionalMetrics> metrics_server_;
  std::unique_ptr<StateStore> state_;
  std::optional<CpuFiles> cpu_files_;
  std::optional<HostClasses> classes_;  // outlives the brain, which it observes
  std::unique_ptr<Reported> reported_;
  std::optional<CgroupLookup> lookup_;
  std::optional<CgroupWriter> cpuset_writer_;
  std::optional<CgroupCauses> causes_;
  std::optional<CreationWatch> creation_watch_;  // outlives the brain, which it observes
  std::optional<Refusals> refusals_;             // outlives the brain, too
  std::optional<DraHost> dra_;                   // outlives the brain, too
  std::optional<BrainHost> host_;
  // Stops the door before the brain and the state end: its requests need the brain, and the brain
  // needs the state.
  std::optional<AtEnd> stop_;
  std::optional<Auditor> auditor_;
  std::optional<UseRebalancer> by_use_;      // outlives `usage_`, which calls it
  std::optional<UseRecorder> use_recorder_;  // outlives `usage_`, too
  std::optional<UsageSampler> usage_;
  std::optional<Configurator> configurator_;
  std::optional<OffLoop> late_;
  std::optional<OnlineWatch> online_;
  std::optional<PodsCgroupWatch> pods_cgroup_;
  std::optional<KubeletWatch> kubelet_;
  std::list<OptionalSocket> sockets_;
  std::optional<AtEnd> page_;  // closes the page while its data still exist
  EventLoop::HandlePtr watchdog_;
  EventLoop::HandlePtr watching_;
  std::optional<ProblemsWatch> problems_watch_;
  std::optional<ReadyNews> ready_;
};

Status RunningNode::Open() {
  RESMGR_RETURN_IF_ERROR(CheckDump(options_, setup_));
  RESMGR_ASSIGN_OR_RETURN(door_, OpenDoor(options_, {loop_, flushes_, pipeline_, metrics()}));
  RESMGR_ASSIGN_OR_RETURN(dumper_, MakeDumper(options_, setup_, metrics()));
  return OkStatus();
}

void RunningNode::Run() {
  metrics_server_.emplace(loop_, options_.metrics_address,
                          counted_ == nullptr ? ServedMetrics() : counted_->Served());
  state_ = OpenState(options_, setup_);
  StartBrain();
  StartConfiguration();
  Serve();
  watchdog_ = FeedWatchdog(loop_);
  watching_ = WatchForMetrics();
  const auto leave_kubelet = [this] { dra_->StopServing(); };
  hand_over_.emplace(HandOverOptions(options_, loop_, *door_, leave_kubelet));
  const auto signals = HandleSignals(
      loop_, *door_, *hand_over_, leave_kubelet, [this] { Reload(options_, *configurator_); },
      [] { ToggleDebug(); });
  ready_.emplace(
      loop_,
      fmt::format("policy {} on {}, {}", setup_.config.policy.active,
                  CountText(setup_.machine->online().size(), "CPU"), options_.door.description),
      [this] { return host_->RuntimeState(); });
  loop_.Run();
  if (!dumper_->Close(kDumpDeadline))
    GetLogger("cri-resmgr").Warn("the rest of the dump was dropped");
  GetLogger("cri-resmgr").Info("ended");
}

void RunningNode::StartBrain() {
  MakeBrain();
  ObserveBrain();
  stop_.emplace([this] { door_->Stop(); });
  door_->Configure(setup_.config);
  door_->Remember(*state_);
  door_->Start(*dumper_);
  host_->Start(std::move(setup_.policy));
  if (reported_ != nullptr) {
    reported_->cpus.Follow(*host_);
    reported_->scheduler.Follow(*host_);
  }
}

void RunningNode::MakeBrain() {
  cpu_files_.emplace(CpuFilesOptions(options_, loop_, pipeline_, setup_));
  classes_.emplace(HostClasses::Options{.loop = loop_,
                                        .pipeline = pipeline_,
                                        .host_root = options_.host_root,
                                        .directory = options_.ClassesDirectory(),
                                        .door = [this] { return door_->ways(); },
                                        .machine = setup_.machine.get(),
                                        .manager = [this] { return host_->manager(); }});
  reported_ = MakeReported(options_, loop_, flushes_, *setup_.machine, counted_.get());
  BrainHost::Options host{.loop = loop_,
                          .machine = *setup_.machine,
                          .door = *door_,
                          .pipeline = pipeline_,
                          .hints = hints_,
                          .devices = &pod_resources_,
                          .state = state_.get()};
  lookup_.emplace(loop_, CgroupReader());
  cpuset_writer_.emplace(loop_, CgroupReader());
  causes_.emplace(loop_, CgroupReader());
  host.manager = {.start_failure = setup_.config.policy.start_failure,
                  .refused_updates = setup_.config.policy.refused_updates,
                  .others = &*lookup_,
                  .cpuset_writer = &*cpuset_writer_,
                  .causes = &*causes_,
                  .runtimes = setup_.config.runtimes};
  host.updated_outside = [this] {
    if (auditor_) auditor_->RunSoon();
  };
  host_.emplace(WithCounts(std::move(host), counted_.get()));
}

void RunningNode::ObserveBrain() {
  host_->Observe(*cpu_files_);
  host_->Observe(*classes_);
  creation_watch_.emplace(CreationWatch::Options{.loop = loop_,
                                                 .manager = [this] { return host_->manager(); },
                                                 .drifted =
                                                     [this] {
                                                       if (auditor_) auditor_->RunSoon();
                                                     }});
  host_->Observe(*creation_watch_);
  refusals_.emplace(host_->history());
  host_->Observe(*refusals_);
  dra_.emplace(DraHost::Options{.loop = loop_,
                                .flushes = flushes_,
                                .machine = *setup_.machine,
                                .host = *host_,
                                .brain = [this]() -> ClaimHolder* {
                                  ResourceManager* const manager = host_->manager();
                                  return manager == nullptr ? nullptr : &manager->claims();
                                },
                                .state = state_.get(),
                                .reports = reported_ == nullptr ? nullptr : &reported_->reports,
                                .agent_socket = options_.agent_socket,
                                .host_root = options_.host_root,
                                .count = ClaimCounter(counted_.get())});
  host_->Observe(dra_->observer());
  host_->Observe(dra_->claims_observer());
  if (reported_ != nullptr) {
    host_->Observe(reported_->cpus);
    host_->Observe(reported_->scheduler);
    host_->Observe(reported_->events);
  }
}

void RunningNode::StartConfiguration() {
  auditor_.emplace(AuditorOptions(loop_, *host_, pipeline_, counted_.get()));
  StartSampling();
  Configurator::Options options{.loop = loop_,
                                .clock = clock_,
                                .reader = MakeReader(options_, setup_.machine),
                                .host = *host_,
                                .dumper = *dumper_,
                                .directory = options_.directory,
                                .forced = options_.forced};
  options.changed = [this](const Configurator& now) { NoteConfiguration(now); };
  options.refused = [this] {
    if (counted_ != nullptr) counted_->watch->NoteRefusedConfiguration();
  };
  configurator_.emplace(std::move(options), setup_.config, setup_.config_source);
  if (const auto& [sender, why] = setup_.refused; !why.empty())
    configurator_->NoteRefusal(sender, why);
  NoteConfiguration(*configurator_);
  late_.emplace(loop_, "late-config", std::chrono::milliseconds(0));
  // After a take-over the kept configuration is read again: one may have been delivered to the
  // other daemon meanwhile.
  const bool taken_over = options_.take_over && !options_.forced;
  if (!setup_.disk_answers || taken_over) RestoreLater(options_, *late_, *configurator_);
}

void RunningNode::StartSampling() {
  by_use_.emplace(UseRebalancer::Options{.clock = clock_,
                                         .manager = [this] { return host_->manager(); },
                                         .look_on = [this](auto time) { usage_->LookOn(time); },
                                         .after_restart = state_->size() > 0});
  use_recorder_.emplace(*dumper_);
  UsageSampler::Options options =
      UsageSamplerOptions(loop_, clock_, *host_, *setup_.machine, options_.host_root,
                          counted_ == nullptr ? nullptr : &counted_->usage,
                          [this] { return configurator_->current().usage.per_container_metrics; });
  options.told = [this, told = std::move(options.told)](const UsageFigures& figures) {
    told(figures);
    by_use_->Observe(figures);
    use_recorder_->Observe(figures);
  };
  options.lost = [this, lost = std::move(options.lost)] {
    lost();
    by_use_->Lose();
  };
  usage_.emplace(std::move(options));
}

void RunningNode::NoteConfiguration(const Configurator& now) {
  door_->Configure(now.current());
  cpu_files_->Configure(now.current().cpu_files);
  classes_->Configure(ClassesInForce(now.current(), options_.policies));
  auditor_->Configure(now.current().audit);
  usage_->Configure(now.current().usage);
  by_use_->Configure(now.current().usage);
  NoteSampling(now.current().usage);
  creation_watch_->SetOn(now.current().audit.interval.count() > 0);
  const ResourceManager* const manager = host_->manager();
  pod_resources_.SetWanted(manager != nullptr && manager->policy().WantsPodResources());
  if (reported_ != nullptr) reported_->NoteConfiguration(now);
  dra_->NoteConfiguration(now.current().dra);
  if (counted_ != nullptr) counted_->watch->NoteConfiguration();
}

void RunningNode::Serve() {
  if (setup_.live) {
    online_.emplace(OnlineWatch::Options{.loop = loop_,
                                         .machine = setup_.machine,
                                         .places = options_.cgroups,
                                         .look = [this](const CpuSet& offline) {
                                           configurator_->SetOffline(offline);
                                           dra_->NoteOffline(offline);
                                         }});
    pods_cgroup_.emplace(
        PodsCgroupWatch::Options{.loop = loop_,
                                 .machine = setup_.machine,
                                 .places = options_.cgroups,
                                 .known = setup_.machine_problems,
                                 .offline = [this] { return online_->offline(); }});
  }
  kubelet_.emplace(KubeletWatch::Options{
      .loop = loop_,
      .file = std::filesystem::path(options_.host_root) / KubeletWatch::kStateFile.substr(1)});
  const NodeView view{
      .loop = loop_,
      .version = options_.version,
      .machine = *setup_.machine,
      .policies = options_.policies,
      .host = *host_,
      .door = *door_,
      .configurator = *configurator_,
      .pipeline = pipeline_,
      .auditor = *auditor_,
      .relay_socket = options_.door.sockets.empty() ? "" : options_.relay_socket,
      .runtime_socket = options_.runtime_socket,
      .cdi_directory = dra_->cdi_directory(),
      .runtime_state = [this] { return host_->RuntimeState(); },
      .state_saved = [this] { return state_->Saved(); },
      .why_no_cpu_file = [this](const ContainerId& id) { return cpu_files_->WhyNone(id); },
      .dump_lost = [this] { return dumper_->lost_calls(); },
      .dump_losing = [this] { return dumper_->losing(); },
      .dump_failing = [this] { return dumper_->failing(); },
      .offline = [this] { return Offline(); },
      .machine_problems = [this] { return MachineProblems(); },
      .own_problems = [this] { return OwnProblems(); },
      .usage = &*usage_,
      .dumper = dumper_.get(),
      .classes = &*classes_,
      .lost_claims = &dra_->lost_claims(),
      .by_use = &*by_use_};
  for (const NodeService& service : options_.services)
    sockets_.emplace_back(loop_, flushes_, service.socket, service.methods(view));
  if (options_.page != nullptr) {
    options_.page->Open(view);
    page_.emplace([this] { options_.page->Close(); });
  }
  WatchProblems(view);
}

// Only metrics and the agent need a watch; all other users ask for the problems themselves.
void RunningNode::WatchProblems(const NodeView& view) {
  if (counted_ == nullptr && reported_ == nullptr) return;
  ProblemsWatch::Options options{.loop = loop_, .problems = [view] { return ProblemsOf(view); }};
  if (counted_ != nullptr) {
    options.count = [&metrics = counted_->node](const ProblemsWatch::Counts& counts) {
      for (const auto& [kind, count] : counts)
        metrics.ShowProblems(kind, count);
    };
  }
  if (reported_ != nullptr)
    options.tell = [this](PodEvent event) { reported_->reports.Add(std::move(event)); };
  problems_watch_.emplace(std::move(options));
}

std::vector<Problem> RunningNode::MachineProblems() const {
  std::vector<Problem> problems = pod_resources_.problems();
  std::ranges::move(kubelet_->problems(), std::back_inserter(problems));
  if (!online_) return problems;
  for (std::string& problem : online_->problems())
    problems.push_back(
        {.kind = "cpu-offline", .message = std::move(problem), .next = "lscpu -e=CPU,NODE,ONLINE"});
  for (std::string& problem : pods_cgroup_->problems())
    problems.push_back(
        {.kind = "drift", .message = std::move(problem), .next = "cri-resmgr-ctl topology"});
  return problems;
}

std::vector<Problem> RunningNode::OwnProblems() const {
  std::vector<Problem> problems;
  // Under the null policy, refusals are not problems any more.
  if (configurator_->current().policy.active != kNullPolicy) problems = refusals_->problems();
  std::ranges::move(dra_->problems(), std::back_inserter(problems));
  if (const Status& noted = state_->open_calls().noted(); !noted.ok()) {
    problems.push_back({.kind = "state",
                        .message = fmt::format("calls under way cannot be noted: {}; after a kill "
                                               "all containers are updated again",
                                               Message(noted)),
                        .objects = {options_.CallsFile()},
                        .next = "make room on the file system of -relay-socket (df -h)"});
  }
  std::ranges::move(door_->problems(), std::back_inserter(problems));
  std::ranges::move(cpu_files_->problems(), std::back_inserter(problems));
  for (const OptionalSocket& socket : sockets_)
    if (std::optional<Problem> problem = socket.problem()) problems.push_back(*std::move(problem));
  if (std::optional<Problem> problem = metrics_server_->problem())
    problems.push_back(*std::move(problem));
  return problems;
}

EventLoop::HandlePtr RunningNode::WatchForMetrics() {
  if (counted_ == nullptr) return nullptr;
  return counted_->watch->Follow(
      {.host = *host_,
       .state_saved = [this] { return state_->Saved(); },
       .state_written = [this] { return state_->written(); },
       .policy = [this] { return configurator_->current().policy.active; },
       .offline = [this] { return Offline(); },
       .cpu_files = [this] { return std::pair(cpu_files_->size(), cpu_files_->behind()); }});
}

}  // namespace

Status RunNode(const NodeOptions& options, Setup setup) {
  const LogThread log_thread;
  RESMGR_RETURN_IF_ERROR(ApplyLogging(setup.config.logger));
  for (const std::string& warning : setup.warnings)
    GetLogger("config").Warn("{}", warning);
  RunningNode node(options, std::move(setup));
  RESMGR_RETURN_IF_ERROR(node.Open());
  node.Run();
  return OkStatus();
}

}  // namespace resmgr
