// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/config/config.h"

namespace resmgr {

// Why an agent delivers no ConfigMap with these parts; "" if it delivers it. `binary_key` is a key
// of its binaryData; "": there is none.
std::string WhyNotDelivered(bool has_data, std::string_view binary_key);

// Parses the YAML form of a file: a configuration, or a ConfigMap of Kubernetes as an agent
// delivers it, so that the map to be applied can be checked. Errors as from ParseConfig and
// ParseConfigMap.
StatusOr<Config> ParseYamlFile(std::string_view text, std::string_view source,
                               const ConfigChecks& checks);

// Parses the `text` of a file, in either of the two formats (ConfigFormat); `source` is its name in
// messages. Options outside the configuration, such as the daemon's sockets, are ignored, since
// they apply only when the daemon starts. kInvalidArgument in one line, with "SOURCE:LINE".
// Thread-safe.
StatusOr<Config> ParseConfigFile(std::string_view text, std::string_view source,
                                 const ConfigChecks& checks);

// Whether an options file may have an option of this name that is not a part of the configuration:
// flags of cri-resmgr that count only when it starts.
bool IsStartOption(std::string_view name);

enum class ConfigFormat { kYaml, kOptions };

// The format of a configuration file's text (as CheckConfigText returns it). Only the lines that
// are indented like the first one decide; blank lines and comments do not count. It is YAML when
// - the first line begins with "{", "---" or "%", or
// - a line is "KEY:" followed by nothing (a block follows), or by one of { & ! ~, or
// - a line is "MODULE.KEY:" with the name of a configuration module, or "apiVersion:";
// else it holds options, one per line. So `policy: static` alone is an option, and a file with a
// section is YAML even if a part of it is malformed. A text without such lines is kOptions.
ConfigFormat DetectConfigFormat(std::string_view text);

}  // namespace resmgr
