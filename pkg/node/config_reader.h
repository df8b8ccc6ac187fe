// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/config/config_options.h"
#include "pkg/dump/dumper.h"
#include "pkg/log/log.h"
#include "pkg/policy/policy.h"
#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// A configuration as it was delivered, not parsed yet.
struct DeliveredConfig {
  // The origin for messages: "agent", "cri-resmgr-ctl" or a file's path.
  std::string name;
  // The data of a ConfigMap; unused if `text` is set.
  std::map<std::string, std::string> data;
  // The text of a configuration file, in either format.
  std::optional<std::string> text;

  friend bool operator==(const DeliveredConfig&, const DeliveredConfig&) = default;
};

// Checks the size of a message that holds a configuration of at most kMaxConfigSize bytes, each
// possibly escaped. kResourceExhausted if the message is too long.
Status CheckMessageSize(std::string_view message);

// kInvalidArgument with the place of the mistake, or for more than kMaxConfigSize bytes or too many
// keys of a ConfigMap.
StatusOr<Config> Parse(const DeliveredConfig& source, const ConfigChecks& checks);

// Stores the last configuration that was delivered to a running daemon and came into force, in
// `DIRECTORY/config`, so that the next start uses it. JSON with mode 0600. All of these functions
// block on the disk.
Status SaveDeliveredConfig(const std::string& directory, const DeliveredConfig& source);
// nullopt if there is none. kInvalidArgument if the file is malformed.
StatusOr<std::optional<DeliveredConfig>> LoadDeliveredConfig(const std::string& directory);
// Returns OK also if there is none.
Status ForgetDeliveredConfig(const std::string& directory);

// A configuration that was read and checked, with all objects needed to put it in force; only the
// brain may still refuse it.
struct ConfigCandidate {
  std::string name;  // its origin, for messages
  Config config;
  std::unique_ptr<Policy> policy;  // null under the null policy
  LogSettings logging;
  dump::Dumper::Settings dump;
  std::string policy_part;  // see PolicyPart
  CpuSet reserved;          // CPUs that the policy never grants
  std::vector<std::string> warnings;
  std::optional<DeliveredConfig> keep;  // to be saved for a restart
};

// Reads and checks configurations against the machine. This may take long and block on the disk, so
// it must not run on the loop. Thread-safe, and owns all that it uses.
class ConfigReader {
 public:
  struct Options {
    std::shared_ptr<const Machine> machine;
    PolicyRegistry policies;
    ConfigOptions overrides{};  // from the command line
    bool dump_secrets = false;
    // The only directory in which a delivered configuration may name a dump file.
    std::string dump_directory{};
    bool asks_hook_servers = false;  // see FrontDoorFactory
    // Used if a delivered configuration has no module `hooks`: from the daemon's own file, as it
    // was read last, and the command line.
    HooksConfig hooks{};
    // The following values are from the daemon's start: its own file and the command line. They
    // name programs to run and sockets to serve and to use, so a delivered configuration
    // cannot set them. The daemon's own file can change `nri`, except for its socket, while the
    // daemon runs; the others need a restart.
    NriHostConfig nri{};
    RuntimesConfig runtimes{};
    CpuSet offline{};  // CPUs of the machine that went offline after it was read
  };

  explicit ConfigReader(Options options);
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // Reads a delivered configuration. kInvalidArgument with the place of a mistake.
  StatusOr<ConfigCandidate> Read(DeliveredConfig source) const;
  // Checks a configuration from the daemon's own file `name`, overridden by the command line.
  StatusOr<ConfigCandidate> Prepare(Config config, std::string name) const;
  // Creates only a new policy for a configuration in force, for the CPUs that are online now.
  StatusOr<ConfigCandidate> MakePolicyAnew(Config config) const;

  // A copy of this reader for the machine with these CPUs offline.
  std::shared_ptr<const ConfigReader> WithOffline(const CpuSet& offline) const;
  // A copy of this reader with these hook servers of the daemon's own file.
  std::shared_ptr<const ConfigReader> WithHooks(HooksConfig hooks) const;
  const CpuSet& offline() const { return options_.offline; }

 private:
  Status PreparePolicy(const Config& config, ConfigCandidate& candidate) const;
  StatusOr<ConfigCandidate> Prepare(Config config, std::string name, bool delivered) const;
  // Restores the parts that are fixed at the daemon's start; adds a warning for each part that
  // differs.
  void KeepStarted(Config& config, bool delivered, std::vector<std::string>& warnings) const;

  const Options options_;
  const ConfigChecks checks_;
};

// The dumper's options. `delivered`: all files except those that the command line names must be in
// `directory`.
dump::Dumper::Options DumpOptions(const DumpConfig& config, const ConfigOptions& overrides,
                                  bool show_secrets, bool delivered, const std::string& directory);

// Puts the logger's settings in force. kInvalidArgument for malformed values.
Status ApplyLogging(const LoggerConfig& config);

// The part of the configuration that decides about placements, and the CPUs that went offline, as a
// text for comparisons.
std::string PolicyPart(const Config& config, const CpuSet& offline = {});

}  // namespace resmgr
