// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_key.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pkg/cmdline/command_document.h"

namespace resmgr {
namespace {

using nlohmann::ordered_json;
using Kind = ConfigKey::Kind;

void AddLeaves(const std::vector<ConfigKey>& keys, const std::string& path,
               std::vector<ConfigLeaf>& leaves) {
  for (const ConfigKey& key : keys) {
    std::string own = path + key.name;
    if (key.kind != Kind::kMap) leaves.push_back({.path = own, .key = &key});
    if (key.kind == Kind::kNames) own += '.' + key.entry_name;
    if (key.kind == Kind::kItems) own += "[]";
    AddLeaves(key.keys, own + '.', leaves);
  }
}

ordered_json TypeOf(const ConfigKey& key);

const ordered_json& ListSchema() {
  static const ordered_json kSchema = {{"type", {"string", "number", "array"}}};
  return kSchema;
}

ordered_json ObjectSchema(const std::vector<ConfigKey>& keys, bool free_names = false) {
  ordered_json properties = ordered_json::object();
  for (const ConfigKey& key : keys) {
    ordered_json& schema = properties[key.name] = TypeOf(key);
    if (!key.help.empty()) schema["description"] = key.help;
  }
  return {{"type", {"object", "null"}},
          {"properties", std::move(properties)},
          {"additionalProperties", free_names ? ListSchema() : ordered_json(false)}};
}

ordered_json TypeOf(const ConfigKey& key) {
  if (!key.choices.empty()) {
    ordered_json schema = {{"type", "string"}, {"enum", key.choices}};
    // A name of any policy may be null, which YAML does not take for a text.
    if (key.kind == Kind::kAny) {
      schema["type"] = {"string", "null"};
      schema["enum"].push_back(nullptr);
    }
    return schema;
  }
  if (!key.pattern.empty()) return {{"type", "string"}, {"pattern", key.pattern}};
  if (key.kind == Kind::kBool) return {{"type", "boolean"}};
  if (key.kind == Kind::kInt) {
    return {{"type", "integer"}, {"minimum", key.min}, {"maximum", key.max}};
  }
  if (key.kind == Kind::kRaw) return ordered_json::object();
  if (key.kind == Kind::kMap) return ObjectSchema(key.keys, key.free_names);
  if (key.kind == Kind::kItems) {
    return {{"type", {"array", "null"}}, {"items", ObjectSchema(key.keys)}};
  }
  if (key.kind == Kind::kList || key.kind == Kind::kAny) return ListSchema();
  if (key.kind != Kind::kNames) return {{"type", {"string", "number", "boolean"}}};
  ordered_json schema = {{"type", {"object", "null"}}};
  if (!key.keys.empty()) schema["additionalProperties"] = ObjectSchema(key.keys);
  return schema;
}

// Removes backticks, which are only for the documentation's tables.
std::string Plain(std::string text) {
  std::erase(text, '`');
  std::ranges::replace(text, '\n', ' ');
  return TroffText(text);
}

void AppendKey(const ConfigLeaf& leaf, std::string& page) {
  const ConfigKey& key = *leaf.key;
  page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", TroffText(leaf.path), Plain(key.help));
  if (!key.choices.empty()) {
    page += Plain(fmt::format("One of: {}.", fmt::join(key.choices, ", "))) + '\n';
  }
  if (const std::string value = DefaultText(key); !value.empty()) {
    page += fmt::format(".br\nDefault: {}\n", Plain(value));
  }
  if (!key.flag.empty()) page += fmt::format(".br\nFlag: \\fB\\-{}\\fR\n", TroffText(key.flag));
}

}  // namespace

void Unset(ConfigKey& key) {
  key.value.reset();
  for (ConfigKey& below : key.keys)
    Unset(below);
}

ConfigNode ValuesOf(const std::vector<ConfigKey>& keys) {
  ConfigNode values = MapNode({});
  for (const ConfigKey& key : keys) {
    ConfigNode value = key.value ? *key.value : ValuesOf(key.keys);
    if (key.value || !value.entries.empty()) values.entries.push_back({key.name, 1, value});
  }
  return values;
}

std::string DefaultText(const ConfigKey& key) {
  if (!key.default_text.empty() || !key.value) return key.default_text;
  std::vector<std::string_view> items{key.value->text};
  if (!key.value->items.empty()) items.clear();
  for (const ConfigNode& item : key.value->items)
    items.push_back(item.text);
  return fmt::format("{}", fmt::join(items, ", "));
}

std::vector<ConfigLeaf> LeavesOf(const std::vector<ConfigKey>& keys) {
  std::vector<ConfigLeaf> leaves;
  AddLeaves(keys, "", leaves);
  return leaves;
}

std::string ConfigSchema(const std::vector<ConfigKey>& keys) {
  ordered_json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}};
  schema.update(ObjectSchema(keys));
  // "policy.Active: static", as in options files.
  std::vector<std::string_view> names;
  for (const ConfigKey& key : keys)
    names.push_back(key.name);
  schema["patternProperties"][fmt::format("^({})[.]", fmt::join(names, "|"))] =
      ordered_json::object();
  return schema.dump(1) + '\n';
}

std::string ConfigManPage(const std::vector<ConfigKey>& keys) {
  std::string page =
      ".\\\" Made by `cri-resmgr -print-config-page`.\n"
      ".TH \"CRI\\-RESMGR.YAML\" 5 \"\" \"cri\\-resmgr\" \"File Formats\"\n"
      ".SH NAME\ncri\\-resmgr.yaml \\- configuration of cri\\-resmgr\n"
      ".SH SYNOPSIS\n.I /etc/cri\\-resmgr/cri\\-resmgr.yaml\n"
      ".SH DESCRIPTION\n"
      "A YAML document with a map for each module. Keys match without regard to case; unknown keys "
      "are errors. A path such as \\fBpolicy.Active\\fR means the key Active in the map policy; a "
      "name in capitals in it stands for a name of yours. Flags of \\fBcri\\-resmgr\\fR(8) have "
      "precedence over the file. The file is checked by \\fBcri\\-resmgr \\-config FILE "
      "\\-check\\-config\\fR.\n"
      ".SH KEYS\n";
  std::string_view section;
  for (const ConfigLeaf& leaf : LeavesOf(keys)) {
    const std::string_view own = std::string_view(leaf.path).substr(0, leaf.path.find('.'));
    if (own != section) page += fmt::format(".SS \"{}\"\n", TroffText(own));
    section = own;
    AppendKey(leaf, page);
  }
  return page + ".SH SEE ALSO\n\\fBcri\\-resmgr\\fR(8), \\fBcri\\-resmgr\\-ctl\\fR(8)\n";
}

}  // namespace resmgr
