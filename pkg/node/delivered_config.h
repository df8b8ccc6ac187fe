// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config.h"

namespace resmgr {

// A configuration as it was delivered.
struct DeliveredConfig {
  // "agent", "cri-resmgr-ctl" or a file's path, for messages.
  std::string name;
  // A ConfigMap's data; not used when `text` is set.
  std::map<std::string, std::string> data;
  // A configuration file of either format.
  std::optional<std::string> text;

  friend bool operator==(const DeliveredConfig&, const DeliveredConfig&) = default;
};

// A message that brings a configuration holds kMaxConfigSize bytes of it, each perhaps escaped.
// ResourceExhausted when it is too long for any.
Status CheckMessageSize(std::string_view message);

// InvalidArgument with the place of the mistake, or when there is more than kMaxConfigSize bytes,
// or more than kMaxConfigKeys keys of a ConfigMap.
inline constexpr size_t kMaxConfigKeys = 256;
StatusOr<Config> Parse(const DeliveredConfig& source, const ConfigChecks& checks);

// The last configuration that was delivered to a running daemon and worked, in `DIRECTORY/config`:
// it is in force again after a restart. JSON with mode 0600. All of these block on the disk.
Status SaveDeliveredConfig(const std::string& directory, const DeliveredConfig& source);
// Nothing when there is none. InvalidArgument when the file is none of ours.
StatusOr<std::optional<DeliveredConfig>> LoadDeliveredConfig(const std::string& directory);
// Fine when there is none.
Status ForgetDeliveredConfig(const std::string& directory);

}  // namespace resmgr
