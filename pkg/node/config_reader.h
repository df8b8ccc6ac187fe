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

// A delivered configuration.
struct DeliveredConfig {
  // "agent", "cri-resmgr-ctl" or a file's path, for messages.
  std::string name;
  // A ConfigMap's data; unused if `text` is set.
  std::map<std::string, std::string> data;
  // A configuration file of either format.
  std::optional<std::string> text;

  friend bool operator==(const DeliveredConfig&, const DeliveredConfig&) = default;
};

// Checks the size of a message with a configuration of up to kMaxConfigSize bytes, each of which
// may be escaped. kResourceExhausted if it is too long.
Status CheckMessageSize(std::string_view message);

// kInvalidArgument with the place of the mistake, or for more than kMaxConfigSize bytes or too many
// keys of a ConfigMap.
StatusOr<Config> Parse(const DeliveredConfig& source, const ConfigChecks& checks);

// Stores the last configuration that was delivered to a running daemon and worked, in
// `DIRECTORY/config`: it is put in force again after a restart. JSON with mode 0600. All of these
// functions block on the disk.
Status SaveDeliveredConfig(const std::string& directory, const DeliveredConfig& source);
// nullopt if there is none. kInvalidArgument if the file is malformed.
StatusOr<std::optional<DeliveredConfig>> LoadDeliveredConfig(const std::string& directory);
// OK also if there is none.
Status ForgetDeliveredConfig(const std::string& directory);

// A read and checked configuration, with all objects needed to put it in force. Only the brain has
// not been asked yet.
struct ConfigCandidate {
  std::string name;  // its origin, for messages
  Config config;
  std::unique_ptr<Policy> policy;  // null under the null policy
  LogSettings logging;
  dump::Dumper::Settings dump;
  std::string policy_part;  // see PolicyPart
  CpuSet reserved;          // that the policy never grants
  std::vector<std::string> warnings;
  std::optional<DeliveredConfig> keep;  // saved for a restart
};

// Reads and checks configurations against the machine. May take long and block on the disk, so it
// must not run on the loop; thread-safe, and owns all that it uses.
class ConfigReader {
 public:
  struct Options {
    std::shared_ptr<const Machine> machine;
    PolicyRegistry policies;
    ConfigOptions overrides{};  // the command line's
    bool dump_secrets = false;
    // The only directory where a delivered configuration may have a file written.
    std::string dump_directory{};
    bool asks_hook_servers = false;  // see FrontDoorFactory
    // The next fields are those of the daemon's start, from its own file and the command line.
    HooksConfig hooks{};  // used if a delivered one has no module `hooks`
    // These name programs to run and sockets to serve and to use, so a delivered configuration
    // cannot set them. The daemon's own file can change `nri`, except the socket; the others need a
    // restart.
    NriHostConfig nri{};
    RuntimesConfig runtimes{};
    CpuSet offline{};  // CPUs of the machine that went offline after it was read
  };

  explicit ConfigReader(Options options);
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // Reads a delivered configuration. kInvalidArgument with the place of a mistake.
  StatusOr<ConfigCandidate> Read(DeliveredConfig source) const;
  // Checks a configuration of the daemon's own file `name`, with the command line over it.
  StatusOr<ConfigCandidate> Prepare(Config config, std::string name) const;
  // Makes only the policy of a configuration in force anew, for the CPUs that are online.
  StatusOr<ConfigCandidate> MakePolicyAnew(Config config) const;

  // The same reader for the machine with these CPUs offline.
  std::shared_ptr<const ConfigReader> WithOffline(const CpuSet& offline) const;
  const CpuSet& offline() const { return options_.offline; }

 private:
  Status PreparePolicy(const Config& config, ConfigCandidate& candidate) const;
  StatusOr<ConfigCandidate> Prepare(Config config, std::string name, bool delivered) const;
  // Restores parts that are fixed at the daemon's start; adds a warning for each part that differs.
  void KeepStarted(Config& config, bool delivered, std::vector<std::string>& warnings) const;

  const Options options_;
  const ConfigChecks checks_;
};

// The dumper's options. `delivered`: files that the command line does not name must be in
// `directory`.
dump::Dumper::Options DumpOptions(const DumpConfig& config, const ConfigOptions& overrides,
                                  bool show_secrets, bool delivered, const std::string& directory);

// Puts the logger's part in force. kInvalidArgument for malformed values.
Status ApplyLogging(const LoggerConfig& config);

// The part of the configuration that decides about placements, and the CPUs that went offline, as a
// text for comparisons.
std::string PolicyPart(const Config& config, const CpuSet& offline = {});

}  // namespace resmgr
