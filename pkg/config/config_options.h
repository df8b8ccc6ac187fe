// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/config/command_line.h"
#include "pkg/config/config.h"
#include "pkg/config/options_file.h"

namespace resmgr {

// The part of the configuration that flags and options files can say too. What is set replaces what
// a configuration file says, lists included: rules of -dump do not mix with the file's.
struct ConfigOptions {
  std::optional<std::string> policy;
  std::string policy_origin;  // of `policy`, as PolicyConfig::active_origin
  std::optional<CpuConstraint> available_cpus;
  std::optional<CpuConstraint> reserved_cpus;
  std::optional<FailurePolicy> start_failure;
  std::vector<std::string> dump;
  std::optional<std::string> dump_file;
  std::optional<std::string> logger_level;
  std::optional<std::string> logger_debug;
  std::optional<std::string> logger_source;
  std::optional<std::string> logger_format;
  std::optional<std::string> nri_host;        // a socket, "" for none
  std::optional<std::string> hook_directory;  // "" for none
  std::optional<std::string> hook_skip_key;
  std::optional<std::string> hook_skip_value;

  // Declares the flags, in groups, with this as their target; it must outlive the parsing.
  void DeclareFlags(CommandLine& line, const ConfigChecks& checks);

  void ApplyTo(Config& config) const;
  // What ApplyTo would take away from a configuration that says otherwise than the defaults and
  // than the flags: by its keys, for a warning. Active is not among them.
  std::vector<std::string> Overridden(const Config& config) const;

  // What stands before an option's name when a message tells where a value came from.
  std::string origin_prefix = "-";

 private:
  void DeclarePolicyFlags(CommandLine& line, const ConfigChecks& checks);
  void DeclareDumpAndLogFlags(CommandLine& line, const ConfigChecks& checks);
  void DeclareNriFlags(CommandLine& line);
  void DeclareHookFlags(CommandLine& line);
};

// Sets the options of a file in a command line, of which `options` declared its part. All errors
// are returned, each with its place on a line of its own.
Status ApplyOptionLines(const std::vector<OptionLine>& lines, CommandLine& line,
                        ConfigOptions& options);

}  // namespace resmgr
