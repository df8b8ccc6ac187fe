// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_format.h"

#include <algorithm>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/config/config.h"

namespace resmgr {

namespace {

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
