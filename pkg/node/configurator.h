// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/dump/dumper.h"
#include "pkg/log/log.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/delivered_config.h"
#include "pkg/node/policy_host.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Changes the configuration of the running daemon: reads and checks it against the machine, plans,
// applies, and on any failure keeps the one that is in force; nothing outside has changed then. One
// after the other, in the order in which they came. Reading and storing happen off the loop. What
// the command line says wins over everything that is delivered. Loop's thread only.
class Configurator {
 public:
  using Done = std::function<void(Status)>;
  // Makes the configuration out of what was received; runs off the loop, and owns what it uses.
  using Decode = std::function<StatusOr<DeliveredConfig>()>;
  using Load = std::function<StatusOr<Config>()>;

  struct Options {
    EventLoop& loop;
    std::shared_ptr<const ConfigReader> reader;
    PolicyHost& host;
    dump::Dumper& dumper;
    std::string directory{};  // where a delivered configuration is kept over restarts
    bool forced = false;      // -force-config: what is delivered is refused
    // Another configuration is in force.
    std::function<void(const Configurator&)> changed = [](const Configurator&) {};
    // One that was to come into force was refused; the one that is in force stays.
    std::function<void()> refused = [] {};
    // A reading that takes longer is given up and refused.
    std::chrono::milliseconds reading_time = std::chrono::seconds(10);
    // How what is kept is written: for tests.
    std::function<Status(const std::string& directory, const DeliveredConfig&)> save =
        &SaveDeliveredConfig;
  };

  // `current` is in force already, from `source` ("FILE", "agent", "defaults").
  Configurator(Options options, Config current, std::string source);
  // Waits for a second until what was accepted is stored.
  ~Configurator();
  Configurator(const Configurator&) = delete;
  Configurator& operator=(const Configurator&) = delete;

  // What to do about a configuration that takes exclusive CPUs away from containers that run.
  enum class Losses { kRefuse, kTake };

  // Makes the configuration the one in force and keeps it over restarts. The status is OK, or says
  // why everything stayed as it was: FailedPrecondition when a forced configuration is in force, or
  // with the names of the containers that would lose exclusive CPUs, InvalidArgument with the place
  // of a mistake, the policy's refusal, Aborted when the runtime refused a move, ResourceExhausted
  // when too many wait, DeadlineExceeded or Unavailable when it could not be read in time. `sender`
  // is for messages: "agent".
  void Deliver(std::string sender, Decode decode, Done done, Losses losses = Losses::kTake);
  // The same for a configuration that comes from the daemon's own file, which is not kept: it is
  // read again at the next start. Containers may lose exclusive CPUs by it.
  void Reload(std::string file, Load load, Done done);

  // One that was delivered to an earlier run, and that could not be read before. It is in force,
  // and kept, unless another one was delivered before; a refusal is logged.
  void Restore(DeliveredConfig kept);

  // Makes null the policy and leaves hook servers out, so that each container gets back what its
  // own request asks for, and takes no other configuration from then on: the daemon is about to be
  // removed. That ends with the daemon, whose next start has the configuration of before. A
  // configuration that is forced does not keep it from that.
  void LetGo(Done done);

  struct Preview {
    Config config;
    std::vector<std::string> warnings;
    std::vector<ResourceManager::Move> moves;
  };
  // What Deliver would do now, by the same way up to the first change; changes nothing.
  using Checked = std::function<void(StatusOr<Preview>)>;
  void Check(std::string sender, Decode decode, Checked checked);

  const Config& current() const { return *current_; }
  // The same for other threads.
  std::shared_ptr<const Config> shared_current() const { return current_; }
  const std::string& source() const { return source_; }
  // ConfigWarnings of the configuration that was put in force last.
  const std::vector<std::string>& warnings() const { return warnings_; }
  bool forced() const { return options_.forced; }
  // Which containers lost exclusive CPUs when the present configuration was put in force, as
  // DescribeLosses tells it; mostly "".
  const std::string& losses() const { return losses_; }

 private:
  // A configuration on its way.
  struct Job {
    std::string sender;
    std::function<StatusOr<ConfigCandidate>(const ConfigReader&)> read;
    bool apply;
    Losses losses;
    Checked answer;
    bool late = false;     // only where nothing was delivered yet
    bool lets_go = false;  // the last one
  };

  Status CheckTaken(const std::string& sender) const;
  void Enqueue(Job job);
  void RunNext();
  void StartReading();
  void EndReading(StatusOr<ConfigCandidate> read);
  void Apply(std::shared_ptr<ConfigCandidate> candidate);
  void Commit(ConfigCandidate candidate, std::string losses);
  void Store(DeliveredConfig source);
  void WarnNotStored(const Status& why);
  StatusOr<Preview> Plan(ConfigCandidate candidate);
  // The first job is over.
  void Finish(StatusOr<Preview> result);

  Logger& log_;
  const Options options_;
  std::shared_ptr<const Config> current_;
  std::string source_;
  std::string policy_part_;
  std::vector<std::string> warnings_;
  std::string losses_;
  std::deque<Job> jobs_;  // the first one is under way
  bool busy_ = false;
  bool delivered_ = false;  // what is in force, to this run
  bool let_go_ = false;
  uint64_t reading_number_ = 0;
  EventLoop::HandlePtr reading_timer_;
  OffLoop reading_;
  OffLoop storing_;
};

}  // namespace resmgr
