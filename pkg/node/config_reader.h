// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/config/config_options.h"
#include "pkg/dump/dumper.h"
#include "pkg/log/log.h"
#include "pkg/node/delivered_config.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// A configuration that was read and checked, with all that it takes to put it in force. Only the
// brain has not been asked yet.
struct ConfigCandidate {
  std::string name;  // where it comes from, for messages
  Config config;
  std::unique_ptr<Policy> policy;  // null under the null policy
  LogSettings logging;
  dump::Dumper::Settings dump;
  std::string policy_part;  // see PolicyPart
  std::vector<std::string> warnings;
  std::optional<DeliveredConfig> keep;  // what has to be known after a restart
};

// Reads and checks configurations against the machine. May take long and block on the disk, so not
// on the loop; thread-safe, and owns what it uses.
class ConfigReader {
 public:
  struct Options {
    std::shared_ptr<const Machine> machine;
    PolicyRegistry policies;
    ConfigOptions overrides{};  // of the command line
    bool dump_secrets = false;
    // The only directory where a configuration that is delivered may have a file written.
    std::string dump_directory{};
    bool asks_hook_servers = false;  // as FrontDoorFactory has it
    // As the daemon was started with, by its own file and the command line.
    HooksConfig hooks{};  // counts where one that is delivered says nothing of hook servers
    // These name programs to run and sockets to serve and to use: what is delivered has no part in
    // them. The daemon's own file changes `nri`, but for the socket; all else needs a restart.
    NriHostConfig nri{};
    RuntimesConfig runtimes{};
  };

  explicit ConfigReader(Options options);
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // A delivered one. InvalidArgument with the place of a mistake.
  StatusOr<ConfigCandidate> Read(DeliveredConfig source) const;
  // One of the daemon's own, from file `name`, with the command line over it.
  StatusOr<ConfigCandidate> Prepare(Config config, std::string name) const;

 private:
  StatusOr<ConfigCandidate> Prepare(Config config, std::string name, bool delivered) const;
  // Puts in what the daemon was started with of what counts until its end; a warning for each part
  // that says otherwise.
  void KeepStarted(Config& config, bool delivered, std::vector<std::string>& warnings) const;

  const Options options_;
  const ConfigChecks checks_;
};

// What a dumper is to do. `delivered`: files that the command line does not name must be in
// `directory`.
dump::Dumper::Options DumpOptions(const DumpConfig& config, const ConfigOptions& overrides,
                                  bool show_secrets, bool delivered, const std::string& directory);

// InvalidArgument for what cannot be read.
StatusOr<LogSettings> ReadLogging(const LoggerConfig& config);

// Puts the logger's part in force; InvalidArgument likewise.
Status ApplyLogging(const LoggerConfig& config);

// The part of the configuration that decides about placements, as a text that can be compared.
std::string PolicyPart(const Config& config);

}  // namespace resmgr
