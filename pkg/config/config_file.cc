// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_file.h"

#include <vector>

#include "pkg/cmdline/command_line.h"
#include "pkg/config/config_format.h"
#include "pkg/config/config_options.h"
#include "pkg/config/config_text.h"
#include "pkg/config/options_file.h"

namespace resmgr {

namespace {

StatusOr<Config> ParseOptions(std::string_view text, std::string_view source,
                              const ConfigChecks& checks) {
  Problems problems;
  std::vector<OptionLine> lines = ParseOptionLines(text, source, problems);
  std::erase_if(lines, [](const OptionLine& line) {
    return line.name.ends_with("-socket") ||
           (line.name.ends_with("-dir") && line.name != "hook-dir") || line.name == "mode" ||
           line.name.starts_with("nri-plugin-") || line.name == "metrics-address" ||
           line.name == "topology" || line.name == "dump-secrets";
  });
  CommandLine line("cri-resmgr", "");
  ConfigOptions options;
  options.DeclareFlags(line, checks);
  problems.Add(ApplyOptionLines(lines, line, options));
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  Config config;
  options.ApplyTo(config);
  return config;
}

}  // namespace

StatusOr<Config> ParseConfigFile(std::string_view text, std::string_view source,
                                 const ConfigChecks& checks) {
  RESMGR_ASSIGN_OR_RETURN(const std::string_view checked, CheckConfigText(text, source));
  if (DetectConfigFormat(checked) == ConfigFormat::kYaml) {
    return ParseConfig(checked, source, checks);
  }
  return ParseOptions(checked, source, checks);
}

}  // namespace resmgr
