// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/cmdline/command_line.h"
#include "pkg/config/config.h"
#include "pkg/config/options_file.h"

namespace resmgr {

// The part of the configuration that flags and options files can set, too. A set value replaces the
// one of a configuration file, also a whole list: rules of -dump do not mix with the file's.
struct ConfigOptions {
  std::optional<std::string> policy;
  std::string policy_origin;  // of `policy`; see PolicyConfig::active_origin
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

  // Declares the flags, in groups, with this object as their target; it must outlive the parsing.
  void DeclareFlags(CommandLine& line, const ConfigChecks& checks);

  void ApplyTo(Config& config) const;
  // The keys, for a warning, whose values ApplyTo would replace although they differ from the
  // defaults and from the flags. Active is not among them.
  std::vector<std::string> Overridden(const Config& config) const;

  // The prefix of an option's name in messages that tell a value's origin.
  std::string origin_prefix = "-";

 private:
  void DeclarePolicyFlags(CommandLine& line, const ConfigChecks& checks);
  void DeclareDumpAndLogFlags(CommandLine& line, const ConfigChecks& checks);
  void DeclareNriFlags(CommandLine& line);
  void DeclareHookFlags(CommandLine& line);
};

// Sets a file's options in a command line in which `options` has declared its part. Returns all
// errors, each with its place on a line of its own.
Status ApplyOptionLines(const std::vector<OptionLine>& lines, CommandLine& line,
                        ConfigOptions& options);

}  // namespace resmgr
