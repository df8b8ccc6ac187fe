// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/config/config_options.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

StatusOr<Config> ParseOptions(std::string_view text, std::string_view source,
                              const ConfigChecks& checks) {
  Problems problems;
  std::vector<OptionLine> lines = ParseOptionLines(text, source, problems);
  std::erase_if(lines, [](const OptionLine& line) { return IsStartOption(line.name); });
  CommandLine line("cri-resmgr", "");
  ConfigOptions options;
  options.DeclareFlags(line, checks);
  problems.Add(ApplyOptionLines(lines, line, options));
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  Config config;
  options.ApplyTo(config);
  return config;
}

constexpr std::array<std::string_view, 31> kStartOptions = {"admin-socket",
                                                            "agent-socket",
                                                            "check-config",
                                                            "config-socket",
                                                            "cpu-file-dir",
                                                            "docker-others",
                                                            "docker-socket",
                                                            "dump-dir",
                                                            "dump-secrets",
                                                            "host-root",
                                                            "image-socket",
                                                            "list-policies",
                                                            "metrics-address",
                                                            "metrics-page",
                                                            "mode",
                                                            "nri-plugin-index",
                                                            "nri-plugin-name",
                                                            "nri-socket",
                                                            "pod-resources-socket",
                                                            "pods-cgroup",
                                                            "print-config",
                                                            "print-config-page",
                                                            "print-schema",
                                                            "relay-dir",
                                                            "relay-socket",
                                                            "reset-config",
                                                            "reset-policy",
                                                            "runtime-socket",
                                                            "take-over",
                                                            "topology",
                                                            "version"};

constexpr std::string_view kApiVersion = "apiVersion";

bool IsConfigMap(const ConfigNode& document) {
  const ConfigNode* const kind = FindMember(document, "kind");
  return kind != nullptr && kind->text == "ConfigMap" &&
         FindMember(document, kApiVersion) != nullptr;
}

StatusOr<std::map<std::string, std::string>> TextsOfData(const ConfigNode& data) {
  std::map<std::string, std::string> texts;
  if (data.kind != ConfigNode::Kind::kMap && data.kind != ConfigNode::Kind::kNull) {
    return ErrorAt(data, "data", "must be a map, not " + std::string(ToString(data.kind)));
  }
  for (const auto& [key, line, value] : data.entries) {
    // An API server would refuse such a map, so an agent never delivers one.
    if (value.kind != ConfigNode::Kind::kScalar) {
      return ErrorAt(value, "data." + Printable(key, 64), "must be a text: begin it with |");
    }
    texts[key] = value.text;
  }
  return texts;
}

StatusOr<std::map<std::string, std::string>> DataOf(const ConfigNode& config_map) {
  const ConfigNode nothing;
  const ConfigNode* const data = FindMember(config_map, "data");
  RESMGR_ASSIGN_OR_RETURN(auto texts, TextsOfData(data == nullptr ? nothing : *data));
  const ConfigNode* const binary = FindMember(config_map, "binaryData");
  const bool has_binary = binary != nullptr && !binary->entries.empty();
  const std::string why =
      WhyNotDelivered(!texts.empty(), has_binary ? binary->entries.front().key : "");
  if (!why.empty()) return ErrorAt(has_binary ? *binary : config_map, "", why);
  return texts;
}

std::string_view Unquote(std::string_view key) {
  const bool quoted = key.size() >= 2 && (key[0] == '"' || key[0] == '\'') && key.back() == key[0];
  return quoted ? key.substr(1, key.size() - 2) : key;
}

// `line` has no white space at its ends.
bool OnlyYamlHas(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view key = Unquote(Trim(line.substr(0, colon)));
  if (key.empty() || key.find_first_of(" \t=") != std::string_view::npos) return false;
  if (key == kApiVersion) return true;
  const std::string_view module = key.substr(0, key.find('.'));
  if (module.size() < key.size()) {
    static const auto* const kModules = new std::vector<std::string>(ConfigModuleNames());
    return std::any_of(kModules->begin(), kModules->end(),
                       [module](std::string_view name) { return EqualsIgnoreCase(name, module); });
  }
  const std::string_view value = Trim(line.substr(colon + 1));
  if (value.empty() || value[0] == '#') return true;
  return colon + 1 < line.size() &&
         std::string_view("{&!~").find(value[0]) != std::string_view::npos;
}

}  // namespace

bool IsStartOption(std::string_view name) {
  return std::ranges::find(kStartOptions, name) != kStartOptions.end();
}

std::string WhyNotDelivered(bool has_data, std::string_view binary_key) {
  if (!binary_key.empty()) {
    return fmt::format(
        "{} is in binaryData, where kubectl puts files that are not UTF-8: the configuration must "
        "be text",
        Printable(binary_key, 64));
  }
  // The daemon would take it for a configuration with the defaults, that is, without a policy.
  return has_data ? "" : "it has no data; delete it where another ConfigMap should apply";
}

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

ConfigFormat DetectConfigFormat(std::string_view text) {
  size_t indentation = std::string_view::npos;
  for (const std::string_view line : Split(text, '\n')) {
    const std::string_view content = Trim(line);
    if (content.empty() || content[0] == '#') continue;
    const size_t indented = line.find_first_not_of(" \t");
    if (indentation == std::string_view::npos) {
      indentation = indented;
      if (content[0] == '{' || content[0] == '%' || content.starts_with("---")) {
        return ConfigFormat::kYaml;
      }
    }
    if (indented == indentation && OnlyYamlHas(content)) return ConfigFormat::kYaml;
  }
  return ConfigFormat::kOptions;
}

}  // namespace resmgr
