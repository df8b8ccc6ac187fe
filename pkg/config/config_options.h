// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/config/config.h"
#include "pkg/config/config_node.h"

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
// Any other line is left out and reported as a problem "SOURCE:LINE: ...".
std::vector<OptionLine> ParseOptionLines(std::string_view text, std::string_view source,
                                         Problems& problems);

// The part of the configuration that flags and options files can set, too: the keys with a
// ConfigFlag. A value that is set here replaces the configuration file's value, and a list the
// whole list: rules of -dump do not mix with the file's. A value; thread-compatible.
class ConfigOptions {
 public:
  // Declares the flags, in groups, with this object as their target; it must outlive the parsing.
  void DeclareFlags(CommandLine& line, const ConfigChecks& checks);
  // Sets the value of a flag, given without dashes; each value of a list is added.
  // kInvalidArgument; its message lacks the flag's name.
  Status Set(std::string_view flag, std::string_view value, const ConfigChecks& checks = {});

  bool Has(std::string_view flag) const;
  // The name of -policy, if it was given.
  std::optional<std::string> policy() const;
  void ApplyTo(Config& config) const;
  // The keys whose values in `config` ApplyTo would replace by other ones, except those with
  // default values and Active; for a warning.
  std::vector<std::string> Overridden(const Config& config) const;

  // The prefix of an option's name in messages that state the origin of a value.
  std::string origin_prefix = "-";

 private:
  std::map<std::string, ConfigNode, std::less<>> settings_;  // by the keys' paths
};

// Sets a file's options in a command line in which `options` has declared its part. Returns all
// errors, each with its place on a line of its own.
Status ApplyOptionLines(const std::vector<OptionLine>& lines, CommandLine& line,
                        ConfigOptions& options);

}  // namespace resmgr
