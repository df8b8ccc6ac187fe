// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/dump/dumper.h"
#include "pkg/log/log.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/policy_host.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Changes the configuration of the running daemon: reads and checks it against the machine, plans,
// applies, and on any failure keeps the present one, without external changes. Configurations are
// handled one after the other, in order. Reading and storing happen off the loop. The command line
// overrides every delivered configuration. Loop's thread only.
class Configurator {
 public:
  using Done = std::function<void(Status)>;
  // Decodes the received configuration; runs off the loop, and owns all that it uses.
  using Decode = std::function<StatusOr<DeliveredConfig>()>;
  using Load = std::function<StatusOr<Config>()>;

  struct Options {
    EventLoop& loop;
    std::shared_ptr<const ConfigReader> reader;
    PolicyHost& host;
    dump::Dumper& dumper;
    std::string directory{};  // directory for a delivered configuration, for restarts
    bool forced = false;      // -force-config: delivered ones are refused
    // Called when another configuration is in force.
    std::function<void(const Configurator&)> changed = [](const Configurator&) {};
    // Called when a configuration was refused; the present one stays in force.
    std::function<void()> refused = [] {};
    // A reading that takes longer is given up, and the configuration refused.
    std::chrono::milliseconds reading_time = std::chrono::seconds(10);
    // Stores a configuration; replaced by tests.
    std::function<Status(const std::string& directory, const DeliveredConfig&)> save =
        &SaveDeliveredConfig;
  };

  // `current` is in force already; `source` is "FILE", "agent" or "defaults".
  Configurator(Options options, Config current, std::string source);
  // Waits up to a second until accepted configurations are stored.
  ~Configurator();
  Configurator(const Configurator&) = delete;
  Configurator& operator=(const Configurator&) = delete;

  // Whether a configuration may take exclusive CPUs away from running containers.
  enum class Losses { kRefuse, kTake };

  // Puts the configuration in force and keeps it for restarts. `done` gets OK, or the reason why
  // everything stayed as before: kFailedPrecondition if a forced configuration is in force, or with
  // the names of the containers that would lose exclusive CPUs, kInvalidArgument with the place of
  // a mistake, the policy's refusal, kAborted if the runtime refused a move, kResourceExhausted if
  // too many wait, kDeadlineExceeded or kUnavailable if it could not be read in time. `sender` is
  // for messages: "agent".
  void Deliver(std::string sender, Decode decode, Done done, Losses losses = Losses::kTake);
  // The same for a configuration of the daemon's own file, which is not kept, since it is read
  // again at the next start. Containers may lose exclusive CPUs. OK without effect if a
  // configuration from elsewhere, which was queued earlier, came into force.
  void Reload(std::string file, Load load, Done done);

  // A configuration that was delivered to an earlier run and could not be read at the start. It is
  // put in force and kept, unless another one was delivered before; a refusal is logged.
  void Restore(DeliveredConfig kept);

  // Sets the CPUs of the machine that are offline now: the policy in force decides without them,
  // and again with those that came back. Does nothing if that is in force already, so it can be
  // called periodically; a failed attempt is repeated.
  void SetOffline(const CpuSet& offline);

  // Changes to the null policy without hook servers, so that each container gets the values of its
  // own request, and refuses every later configuration, since the daemon is about to be removed.
  // The next start of the daemon uses the former configuration again. Works also if a configuration
  // is forced.
  void LetGo(Done done);

  struct Preview {
    Config config;
    std::vector<std::string> warnings;
    std::vector<ResourceManager::Move> moves;
  };
  // The result that Deliver would have now, by the same way up to the first change; changes
  // nothing.
  using Checked = std::function<void(StatusOr<Preview>)>;
  void Check(std::string sender, Decode decode, Checked checked);

  const Config& current() const { return *current_; }
  // The present configuration for other threads.
  std::shared_ptr<const Config> shared_current() const { return current_; }
  const std::string& source() const { return source_; }
  // ConfigWarnings of the present configuration.
  const std::vector<std::string>& warnings() const { return warnings_; }
  bool forced() const { return options_.forced; }
  // The containers that lost exclusive CPUs when the present configuration was put in force, in the
  // form of DescribeLosses; usually "".
  const std::string& losses() const { return losses_; }

  // A configuration that was refused, as long as no other one came into force since then.
  struct Refusal {
    std::chrono::system_clock::time_point since{};  // the first refusal
    std::string sender{};
    std::string why{};  // of the last one
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // The configuration of an earlier run was refused at the start.
  void NoteRefusal(std::string sender, std::string why);
  // Why the configuration in force is not kept for restarts; OK where it is, or need not be.
  const Status& stored() const { return stored_; }

 private:
  // A queued configuration.
  struct Job {
    std::string sender;
    std::function<StatusOr<ConfigCandidate>(const ConfigReader&)> read;
    bool apply;
    Losses losses;
    Checked answer;
    bool late = false;     // applies only if none was delivered before
    bool lets_go = false;  // the last job (LetGo)
    bool machine = false;  // the configuration stays; other CPUs are offline
    // The source of the configuration that the job replaces: if another source's configuration is
    // in force by then, the job has no effect.
    std::optional<std::string> replaces{};
  };

  Status CheckTaken(const std::string& sender) const;
  void Enqueue(Job job);
  void RunNext();
  void StartReading();
  // Whether the first job has come too late to have an effect.
  bool IsOutOfDate() const;
  void EndReading(StatusOr<ConfigCandidate> read);
  void Apply(std::shared_ptr<ConfigCandidate> candidate);
  Status ApplyMachine(ConfigCandidate candidate);
  void Commit(ConfigCandidate candidate, std::string losses);
  void Store(DeliveredConfig source);
  void WarnNotStored(const Status& why);
  StatusOr<Preview> Plan(ConfigCandidate candidate);
  // Ends the first job.
  void Finish(StatusOr<Preview> result);

  Logger& log_;
  const Options options_;
  std::shared_ptr<const ConfigReader> reader_;
  bool machine_waits_ = false;   // a job for the CPUs that are offline now
  bool machine_failed_ = false;  // the last one, which was logged
  CpuSet offline_;               // in force
  CpuSet reading_offline_;       // CPUs that are offline for the configuration that is being read
  std::shared_ptr<const Config> current_;
  std::string source_;
  std::string policy_part_;
  std::vector<std::string> warnings_;
  std::string losses_;
  std::optional<Refusal> refusal_;
  Status stored_;
  std::deque<Job> jobs_;  // the first one is under way
  bool busy_ = false;
  uint64_t commits_ = 0;
  bool delivered_ = false;  // the present one was delivered to this run
  bool let_go_ = false;
  uint64_t reading_number_ = 0;
  EventLoop::HandlePtr reading_timer_;
  OffLoop reading_;
  OffLoop storing_;
};

// Describes the containers that lose exclusive CPUs by a change: "default/dsp/main (CPU 1,
// exclusive -> CPUs 0-1, shared)". If there are many, the first ones are named and the others
// counted. Empty if no container loses any.
std::string DescribeLosses(const std::vector<ResourceManager::Move>& moves);

// The moves by which containers lose exclusive CPUs.
std::vector<ResourceManager::Move> LossesAmong(const std::vector<ResourceManager::Move>& moves);

}  // namespace resmgr
