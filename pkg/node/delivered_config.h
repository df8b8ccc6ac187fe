// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config.h"

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

// kInvalidArgument with the place of the mistake, or for more than kMaxConfigSize bytes, or more
// than kMaxConfigKeys keys of a ConfigMap.
inline constexpr size_t kMaxConfigKeys = 256;
StatusOr<Config> Parse(const DeliveredConfig& source, const ConfigChecks& checks);

// Stores the last configuration that was delivered to a running daemon and worked, in
// `DIRECTORY/config`: it is put in force again after a restart. JSON with mode 0600. All of these
// functions block on the disk.
Status SaveDeliveredConfig(const std::string& directory, const DeliveredConfig& source);
// nullopt if there is none. kInvalidArgument if the file is malformed.
StatusOr<std::optional<DeliveredConfig>> LoadDeliveredConfig(const std::string& directory);
// OK also if there is none.
Status ForgetDeliveredConfig(const std::string& directory);

}  // namespace resmgr
