// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_file.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/config/config_format.h"
#include "pkg/config/config_options.h"
#include "pkg/config/config_text.h"
#include "pkg/config/options_file.h"
#include "pkg/config/yaml_reader.h"

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

// nullptr if the map has no such key.
const ConfigNode* ValueOf(const ConfigNode& map, std::string_view key) {
  const auto entry = std::ranges::find(map.entries, key, &ConfigNode::Entry::key);
  return entry == map.entries.end() ? nullptr : &entry->value;
}

bool IsConfigMap(const ConfigNode& document) {
  const ConfigNode* const kind = ValueOf(document, "kind");
  return kind != nullptr && kind->text == "ConfigMap" &&
         ValueOf(document, "apiVersion") != nullptr && ValueOf(document, "data") != nullptr;
}

StatusOr<std::map<std::string, std::string>> DataOf(const ConfigNode& config_map) {
  const ConfigNode& data = *ValueOf(config_map, "data");
  if (data.kind != ConfigNode::Kind::kMap && data.kind != ConfigNode::Kind::kNull) {
    return ErrorAt(data, "data", "must be a map, not " + std::string(ToString(data.kind)));
  }
  std::map<std::string, std::string> texts;
  for (const auto& [key, line, value] : data.entries) {
    // An API server refuses such a map, so an agent never delivers it.
    if (value.kind != ConfigNode::Kind::kScalar) {
      return ErrorAt(value, "data." + Printable(key, 64), "must be a text: begin it with |");
    }
    texts[key] = value.text;
  }
  return texts;
}

}  // namespace

StatusOr<Config> ParseYamlFile(std::string_view text, std::string_view source,
                               const ConfigChecks& checks) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode document, ParseYaml(text, source));
  if (!IsConfigMap(document)) return ParseConfig(document, checks);
  RESMGR_ASSIGN_OR_RETURN(const auto data, DataOf(document));
  return ParseConfigMap(data, source, checks);
}

StatusOr<Config> ParseConfigFile(std::string_view text, std::string_view source,
                                 const ConfigChecks& checks) {
  RESMGR_ASSIGN_OR_RETURN(const std::string_view checked, CheckConfigText(text, source));
  if (DetectConfigFormat(checked) == ConfigFormat::kYaml) {
    return ParseYamlFile(checked, source, checks);
  }
  return ParseOptions(checked, source, checks);
}

}  // namespace resmgr
