// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/dump/dumper.h"
#include "pkg/log/log.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/policy_host.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Changes the configuration of the running daemon: reads and checks a configuration against the
// machine, plans, and applies it. On any failure the present configuration stays, and nothing
// outside has changed. Configurations are handled one after the other, in order. Reading and
// storing happen off the loop. The command line overrides every delivered configuration. Loop's
// thread only.
class Configurator {
 public:
  using Done = std::function<void(Status)>;
  // Decodes the received configuration; runs off the loop, and owns all that it uses.
  using Decode = std::function<StatusOr<DeliveredConfig>()>;
  using Load = std::function<StatusOr<Config>()>;

  struct Options {
    EventLoop& loop;
    Clock& clock;  // for the deadline of reading
    std::shared_ptr<const ConfigReader> reader;
    PolicyHost& host;
    dump::Dumper& dumper;
    std::string directory{};  // where a delivered configuration is stored for restarts
    bool forced = false;      // -force-config: delivered configurations are refused
    // Called when another configuration has come into force.
    std::function<void(const Configurator&)> changed = [](const Configurator&) {};
    // Called when a configuration was refused; the present one stays in force.
    std::function<void()> refused = [] {};
    // If reading takes longer, it is given up, and the configuration is refused.
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
  // everything stayed as before: kFailedPrecondition if a forced configuration is in force or
  // containers, which the message names, would lose exclusive CPUs; kInvalidArgument with the place
  // of a mistake; the policy's refusal; kAborted if the runtime refused a move; kResourceExhausted
  // if too many configurations wait; kDeadlineExceeded or kUnavailable if it could not be read in
  // time. `sender` is for messages: "agent".
  void Deliver(std::string sender, Decode decode, Done done, Losses losses = Losses::kTake);
  // As Deliver, for the daemon's own file, which is read again at the next start and so is not
  // kept. Containers may lose exclusive CPUs. OK without effect if a configuration from elsewhere,
  // which was queued earlier, has come into force.
  void Reload(const std::string& file, Load load, Done done);

  // Puts in force, and keeps, a configuration that was delivered to an earlier run and could not be
  // read at the start, unless another one was delivered before. A refusal is logged.
  void Restore(DeliveredConfig kept);

  // Sets the CPUs of the machine that are offline now: the policy in force decides without them,
  // and again with CPUs that came back. May be called periodically: does nothing if these CPUs are
  // already set, and repeats a failed attempt.
  void SetOffline(const CpuSet& offline);

  // Prepares the daemon's removal: changes to the null policy without hook servers, so that each
  // container gets the values of its own request, and refuses every later configuration. The next
  // start of the daemon uses the former configuration again. Works also if a configuration is
  // forced.
  void LetGo(Done done);

  struct Preview {
    Config config;
    std::vector<std::string> warnings;
    std::vector<ResourceManager::Move> moves;
  };
  // Finds the result that Deliver would have now, by the same steps but without changing anything.
  using Checked = std::function<void(StatusOr<Preview>)>;
  void Check(std::string sender, Decode decode, Checked checked);

  const Config& current() const { return *current_; }
  // The present configuration, for use by other threads.
  std::shared_ptr<const Config> shared_current() const { return current_; }
  const std::string& source() const { return source_; }
  // ConfigWarnings of the present configuration.
  const std::vector<std::string>& warnings() const { return warnings_; }
  bool forced() const { return options_.forced; }
  // The containers that lost exclusive CPUs when the present configuration was put in force, in the
  // form of DescribeLosses; usually "".
  const std::string& losses() const { return losses_; }

  // The last refused configuration, until another one comes into force.
  struct Refusal {
    std::chrono::system_clock::time_point since{};  // the first refusal
    std::string sender{};
    std::string why{};  // why the last one was refused
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // Notes that the configuration of an earlier run was refused at the start.
  void NoteRefusal(std::string sender, std::string why);
  // Why the configuration in force is not kept for restarts; OK if it is, or need not be.
  const Status& stored() const { return stored_; }
  // Calls `done` once with that, as soon as it is known: after five seconds at the latest.
  void WhenStored(Done done);

 private:
  // A queued configuration.
  struct Job {
    std::string sender;
    std::function<StatusOr<ConfigCandidate>(const ConfigReader&)> read;
    Checked answer;
    bool apply = true;  // false: only looks at what would happen
    Losses losses = Losses::kTake;
    bool late = false;     // has no effect if another one was delivered before
    bool lets_go = false;  // the last job (LetGo)
    bool machine = false;  // only the set of offline CPUs changes
    // The source of the configuration that the job replaces. If the configuration in force is from
    // another source by then, the job has no effect.
    std::optional<std::string> replaces{};
  };

  Status CheckTaken(const std::string& sender) const;
  void Enqueue(Job job);
  void RunNext();
  void StartReading();
  // Whether a newer configuration has made the first job pointless.
  bool IsOutOfDate() const;
  void EndReading(StatusOr<ConfigCandidate> read);
  void Apply(const std::shared_ptr<ConfigCandidate>& candidate);
  Status ApplyMachine(ConfigCandidate candidate);
  void Commit(ConfigCandidate candidate, std::string losses);
  void Store(DeliveredConfig source);
  void EndStoring(const Status& result);
  StatusOr<Preview> Plan(ConfigCandidate candidate);
  // Ends the first job and passes on its result.
  void Finish(StatusOr<Preview> result);

  Logger& log_;
  const Options options_;
  std::shared_ptr<const ConfigReader> reader_;
  bool machine_waits_ = false;   // a job for the present offline CPUs is queued
  bool machine_failed_ = false;  // the last such job failed, which was logged
  CpuSet offline_;               // the offline CPUs that were set last
  CpuSet reading_offline_;       // offline CPUs that the configuration being read is for
  std::shared_ptr<const Config> current_;
  std::string source_;
  std::string policy_part_;
  std::vector<std::string> warnings_;
  std::string losses_;
  std::optional<Refusal> refusal_;
  Status stored_;
  bool stores_ = false;            // the one in force is being stored
  std::vector<Done> want_stored_;  // told when that has ended
  EventLoop::HandlePtr storing_timer_;
  std::deque<Job> jobs_;  // the first one is under way
  bool busy_ = false;
  uint64_t commits_ = 0;
  bool delivered_ = false;  // the present configuration was delivered to this run
  bool let_go_ = false;
  uint64_t reading_number_ = 0;
  EventLoop::HandlePtr reading_timer_;
  OffLoop reading_;
  OffLoop storing_;
};

// Describes the containers that lose exclusive CPUs by a change: "default/dsp/main (CPU 1,
// exclusive -> CPUs 0-1, shared)". If there are many, only the first ones are named, with the
// number of others. Empty if no container loses any.
std::string DescribeLosses(const std::vector<ResourceManager::Move>& moves);

// The moves that take exclusive CPUs away from containers.
std::vector<ResourceManager::Move> LossesAmong(const std::vector<ResourceManager::Move>& moves);

}  // namespace resmgr
