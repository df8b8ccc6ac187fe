// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/startup.h"

#include <chrono>
#include <list>
#include <string_view>

#include "pkg/config/config_node.h"
#include "pkg/cri/call_observers.h"
#include "pkg/log/log.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/hand_over.h"
#include "pkg/node/policy_setup.h"
#include "pkg/state/file_system.h"
#include "pkg/state/record_log.h"
#include "pkg/sys/files.h"
#include "pkg/sys/thread.h"
#include "pkg/sys/unix_socket.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

// How long the start waits for data that an earlier run kept.
constexpr std::chrono::seconds kDiskPatience{5};

StatusOr<FoundMachine> MachineOf(const NodeOptions& options) {
  auto found = FindMachine(options.topology, options.cgroups);
  if (!found.ok()) return Annotate(found.status(), "-topology " + options.topology);
  return found;
}

// Sets the machine and the warnings about it. Under the null policy, which places nothing, the
// problems of a live machine are not warnings.
void SetMachine(const NodeOptions& options, std::shared_ptr<const Machine> machine,
                const std::optional<CgroupSets>& pods, Setup& setup) {
  setup.machine = std::move(machine);
  setup.warnings = ConfigWarnings(setup.config, *setup.machine, options.policies);
  setup.live = pods.has_value();
  if (!setup.live) return;
  setup.machine_problems = CgroupDifferences(*setup.machine, *pods, ReadOwnCgroup(options.cgroups));
  if (setup.policy == nullptr) return;
  setup.warnings.insert(setup.warnings.end(), setup.machine_problems.begin(),
                        setup.machine_problems.end());
}

// Prepares the configuration of an earlier run, if it still fits; otherwise `refused` becomes
// Setup::refused.
std::optional<Setup> PrepareKept(std::optional<KeptConfig> kept, const RuntimesConfig& runtimes,
                                 const PolicyRegistry& policies, const Machine& machine,
                                 std::pair<std::string, std::string>& refused) {
  if (!kept) return std::nullopt;
  Setup setup;
  if (kept->config.ok()) {
    StatusOr<std::unique_ptr<Policy>> policy =
        MakePolicy(kept->config->policy, runtimes, machine, policies);
    if (policy.ok()) {
      setup.policy = *std::move(policy);
    } else {
      kept->config = policy.status();
    }
  }
  if (!kept->config.ok()) {
    const std::string why = OneLine(Message(kept->config.status()));
    GetLogger("config").Warn("the configuration that {} delivered to an earlier run is ignored: {}",
                             kept->source, why);
    // If the disk did not answer, the configuration is not refused: it is read again later.
    if (kept->config.status().code() != StatusCode::kDeadlineExceeded)
      refused = {kept->source, why};
    return std::nullopt;
  }
  setup.config = *std::move(kept->config);
  setup.config_source = std::move(kept->source);
  setup.delivered = true;
  return setup;
}

// Logs that the file on the command line is not in force, because a delivered configuration is. For
// a configuration from the agent this is usual, so only one delivered by hand is worth a warning.
void TellOfUnusedFile(const NodeOptions& options, const Setup& setup) {
  if (!setup.delivered || options.config_file.empty()) return;
  const std::string text =
      fmt::format("the configuration from {} is in force, not {}; -reset-config forgets it",
                  setup.config_source, options.config_file);
  Logger& log = GetLogger("config");
  setup.config_source == "agent" ? log.Info("{}", text) : log.Warn("{}", text);
}

StatusOr<Setup> PrepareOwn(const NodeOptions& options, const Machine& machine) {
  Setup setup;
  setup.config = options.config;
  setup.config_source = options.ConfigName();
  RESMGR_ASSIGN_OR_RETURN(setup.policy, MakePolicy(options.config.policy, options.config.runtimes,
                                                   machine, options.policies));
  return setup;
}

// The file system for the state. Never destroyed: a thread that hangs on the disk may use it until
// the process ends, and no other daemon may change the files before. Without them the node works
// from the runtime's containers alone.
FileSystem& StateFiles(const NodeOptions& options) {
  const auto on_refusal = [](const Status& status) {
    const bool other = status.code() == StatusCode::kAlreadyExists;
    GetLogger("state").Warn("-relay-dir: {}; the state will be lost at a restart{}",
                            Message(status), other ? " while that daemon runs" : "");
  };
  static auto& all = *new std::list<ClaimedFileSystem>;
  return all.emplace_back(RealFileSystem(), options.StateDirectory(), on_refusal);
}

}  // namespace

std::optional<KeptConfig> LoadKeptConfig(const NodeOptions& options) {
  if (options.forced) return std::nullopt;
  using Source = StatusOr<std::optional<DeliveredConfig>>;
  auto answer = AnswerWithin<Source>(kDiskPatience, "kept-config", [directory = options.directory] {
    return LoadDeliveredConfig(directory);
  });
  if (!answer) {
    return KeptConfig{.source = options.directory,
                      .config = DeadlineExceeded("its disk does not answer")};
  }
  Source& kept = *answer;
  if (!kept.ok()) GetLogger("config").Warn("{}", Message(kept.status()));
  if (!kept.ok() || !kept->has_value()) return std::nullopt;
  KeptConfig loaded{.source = (*kept)->name, .config = Parse(**kept, ChecksWith(options.policies))};
  if (!loaded.config.ok()) return loaded;
  const PolicyConfig& policy = loaded.config->policy;
  const std::optional<std::string> flag = options.overrides.policy();
  if (flag && !policy.active_origin.empty() && policy.active != *flag) {
    GetLogger("config").Warn("{}: \"{}\" has no effect, since -policy says {}",
                             policy.active_origin, policy.active, *flag);
  }
  options.overrides.ApplyTo(*loaded.config);
  loaded.config->nri = options.config.nri;
  if (!loaded.config->hooks.stated || !options.door.asks_hook_servers)
    loaded.config->hooks = options.config.hooks;
  loaded.config->runtimes = options.config.runtimes;
  return loaded;
}

StatusOr<Setup> Prepare(const NodeOptions& options) {
  RESMGR_ASSIGN_OR_RETURN(FoundMachine on, MachineOf(options));
  const auto machine = std::make_shared<const Machine>(std::move(on.machine));
  std::optional<KeptConfig> found = LoadKeptConfig(options);
  const bool answers = !found || found->config.status().code() != StatusCode::kDeadlineExceeded;
  std::pair<std::string, std::string> refused;
  std::optional<Setup> kept =
      PrepareKept(std::move(found), options.config.runtimes, options.policies, *machine, refused);
  if (!kept) {
    RESMGR_ASSIGN_OR_RETURN(kept, PrepareOwn(options, *machine));
  }
  TellOfUnusedFile(options, *kept);
  kept->refused = std::move(refused);
  kept->disk_answers = answers;
  SetMachine(options, machine, on.pods, *kept);
  return *std::move(kept);
}

StatusOr<Setup> CheckOnly(const NodeOptions& options) {
  RESMGR_ASSIGN_OR_RETURN(FoundMachine on, MachineOf(options));
  const auto machine = std::make_shared<const Machine>(std::move(on.machine));
  RESMGR_ASSIGN_OR_RETURN(Setup setup, PrepareOwn(options, *machine));
  SetMachine(options, machine, on.pods, setup);
  RESMGR_ASSIGN_OR_RETURN(
      const dump::Dumper::Settings dump,
      dump::Dumper::Read(DumpOptions(setup.config.dump, options.overrides, false, false, "")));
  const Status probed = dump::Dumper::Probe(dump);
  if (!probed.ok()) setup.warnings.push_back(fmt::format("dump: {}", Message(probed)));
  return setup;
}

Status Reset(const NodeOptions& options, Forget what) {
  if (ConnectUnix(options.relay_socket).ok())
    return FailedPrecondition("an instance serves {}: stop it first", options.relay_socket);
  // The claim may belong to a daemon that is ending: its socket is closed, but it still writes.
  const auto claim = ClaimDirectory(options.StateDirectory());
  if (claim.status().code() == StatusCode::kAlreadyExists)
    return FailedPrecondition("{}: wait until it has ended", Message(claim.status()));
  if (!claim.ok() && claim.status().code() != StatusCode::kNotFound) return claim.status();
  if (what.placements)
    RESMGR_RETURN_IF_ERROR(RecordLog::Reset(RealFileSystem(), options.StateDirectory()));
  if (what.delivered_config) RESMGR_RETURN_IF_ERROR(ForgetDeliveredConfig(options.directory));
  return OkStatus();
}

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

std::unique_ptr<StateStore> OpenState(const NodeOptions& options, const Setup& setup) {
  // If the disk has not answered before, the start does not wait for it again.
  return std::make_unique<StateStore>(
      StateFiles(options), options.StateDirectory(), StateLabel(*setup.machine),
      [](std::string_view line) { GetLogger("state").Warn("{}", line); }, options.CallsFile(),
      setup.disk_answers ? StateStore::kPatience : std::chrono::milliseconds(0));
}

StatusOr<std::unique_ptr<dump::Dumper>> MakeDumper(const NodeOptions& node, const Setup& setup,
                                                   Metrics* metrics) {
  Logger& log = GetLogger("message");
  dump::Dumper::Options options = DumpOptions(setup.config.dump, node.overrides, node.dump_secrets,
                                              setup.delivered, node.dump_directory);
  const Status allowed = dump::Dumper::Read(options).status();
  if (setup.delivered && !allowed.ok()) {
    log.Warn("dump is off: {}", Message(allowed));
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

Status CheckDump(const NodeOptions& node, const Setup& setup) {
  if (setup.delivered) return OkStatus();
  return dump::Dumper::Read(DumpOptions(setup.config.dump, node.overrides, node.dump_secrets, false,
                                        node.dump_directory))
      .status();
}

}  // namespace resmgr
