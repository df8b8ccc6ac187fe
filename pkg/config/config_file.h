// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/config/config.h"

namespace resmgr {

// Parses the YAML form of a file: a configuration, or a ConfigMap of Kubernetes as an agent
// delivers it, so that the map to be applied can be checked. Errors as of ParseConfig and
// ParseConfigMap.
StatusOr<Config> ParseYamlFile(std::string_view text, std::string_view source,
                               const ConfigChecks& checks);

// Parses the `text` of a file, in either of the two formats (config_format.h); `source` is its name
// in messages. Options outside the configuration, such as the daemon's sockets, are ignored, since
// they apply at its start only. kInvalidArgument in one line, with "SOURCE:LINE". Thread-safe.
StatusOr<Config> ParseConfigFile(std::string_view text, std::string_view source,
                                 const ConfigChecks& checks);

}  // namespace resmgr
