// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace resmgr {

enum class ConfigFormat { kYaml, kOptions };

// Which of the two formats of a configuration file a text (as CheckConfigText returns it) is in.
// Looked at are its lines with the
// indentation of the first one, without blank lines and comments. It is YAML when
//   - the first of them begins with "{", "---" or "%", or
//   - one is "KEY:" and behind it stands nothing (a block follows), or one of { & ! ~, or
//   - one is "MODULE.KEY:" with the name of a configuration module;
// else it holds options, one per line. So `policy: static` alone is an option, and a file with a
// section is YAML even when a part of it is broken. A text without any such line is kOptions.
ConfigFormat DetectConfigFormat(std::string_view text);

}  // namespace resmgr
