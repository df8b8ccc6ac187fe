// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pkg/admin/config_source.h"
#include "pkg/admin/policy_host.h"
#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/config/config_options.h"
#include "pkg/dump/dumper.h"
#include "pkg/log/log.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Changes the configuration of the running daemon: reads and checks it against the machine, plans,
// applies, and on any failure keeps the one that is in force. What the command line says wins over
// everything that is delivered. Loop's thread only.
class Configurator {
 public:
  using Done = std::function<void(Status)>;

  struct Options {
    const Machine& machine;
    const PolicyRegistry& policies;
    PolicyHost& host;
    dump::Dumper& dumper;
    bool dump_secrets = false;
    ConfigOptions overrides{};  // of the command line
    std::string directory{};    // where a delivered configuration is kept over restarts
    bool forced = false;        // -force-config: what is delivered is refused
    // Another configuration is in force.
    std::function<void(const Configurator&)> changed = [](const Configurator&) {};
  };

  // `current` is in force already, from `source` ("FILE", "agent", "defaults").
  Configurator(Options options, Config current, std::string source);
  // Waits until what was accepted is stored.
  ~Configurator();
  Configurator(const Configurator&) = delete;
  Configurator& operator=(const Configurator&) = delete;

  // Makes the configuration the one in force and keeps it over restarts, one after the other. The
  // status is OK, or says why everything stayed as it was: FailedPrecondition when a forced
  // configuration is in force, InvalidArgument with the place of a mistake, the policy's refusal,
  // Aborted when the runtime refused a move, ResourceExhausted when too many wait.
  void Deliver(ConfigSource source, Done done);
  // The same for a configuration that comes from the daemon's own file, which is not kept: it is
  // read again at the next start.
  void Reload(Config config, std::string source, Done done);

  struct Preview {
    Config config;
    std::vector<ResourceManager::Move> moves;
  };
  // What Deliver would do now; changes nothing.
  StatusOr<Preview> Check(const ConfigSource& source);

  const Config& current() const { return current_; }
  const std::string& source() const { return source_; }
  bool forced() const { return options_.forced; }

 private:
  struct Job {
    Config config;
    std::string name;
    std::optional<ConfigSource> keep;
    Done done;
  };

  StatusOr<Config> Read(const ConfigSource& source) const;
  void Enqueue(Job job);
  void RunNext();
  void Apply();
  void Finish(const Status& status);
  void Commit();
  void Store(ConfigSource source);
  dump::Dumper::Options DumpOptions(const DumpConfig& config) const;

  Logger& log_;
  const Options options_;
  const ConfigChecks checks_;
  Config current_;
  std::string source_;
  std::deque<Job> jobs_;  // the first one is under way
  bool busy_ = false;
  std::thread storing_;
};

// Puts the logger's part in force; InvalidArgument for what cannot be read.
Status ApplyLogging(const LoggerConfig& config);

}  // namespace resmgr
