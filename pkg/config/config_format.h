// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

enum class ConfigFormat { kYaml, kOptions };

// The format of a configuration file's text (as CheckConfigText returns it). Decided by the lines
// with the indentation of the first one, without blank lines and comments. It is YAML when
// - the first line begins with "{", "---" or "%", or
// - a line is "KEY:" followed by nothing (a block follows), or by one of { & ! ~, or
// - a line is "MODULE.KEY:" with the name of a configuration module;
// else it holds options, one per line. So `policy: static` alone is an option, and a file with a
// section is YAML even if a part of it is malformed. A text without such lines is kOptions.
ConfigFormat DetectConfigFormat(std::string_view text);

}  // namespace resmgr
