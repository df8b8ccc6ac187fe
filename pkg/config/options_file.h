// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/problems.h"

namespace resmgr {

// One line of an options file.
struct OptionLine {
  std::string name;
  std::optional<std::string> value;  // unset for a name alone
  std::string where;                 // "SOURCE:LINE"
};

// Parses the second format of a configuration file: the command line's flags without dashes, one
// per line:
//   option value          # a comment follows a # at the beginning or after white space
//   option = value
//   option: "a value"     in single or double quotes, without escapes
//   bool-option
// Any other line is a problem "SOURCE:LINE: ...", and left out.
std::vector<OptionLine> ParseOptionLines(std::string_view text, std::string_view source,
                                         Problems& problems);

}  // namespace resmgr
