// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/differences.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"

namespace resmgr::dump {
namespace {

using nlohmann::json;

constexpr std::string_view kAround = "config.";
// Characters of a value; a list may be the whole environment.
constexpr size_t kLongestValue = 256;

json DefaultOf(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return json::object();
    case json::value_t::array:
      return json::array();
    case json::value_t::string:
      return "";
    case json::value_t::boolean:
      return false;
    default:
      return 0;
  }
}

std::string Shown(const json& value) {
  return Printable(PrintableJson(JsonText(value)), kLongestValue);
}

void Compare(const std::string& name, const json& before, const json& after,
             std::vector<std::string>& lines) {
  if (before == after) return;
  if (!before.is_object() || !after.is_object()) {
    const std::string_view shown =
        name.starts_with(kAround) ? std::string_view(name).substr(kAround.size()) : name;
    lines.push_back(
        fmt::format("{} {} -> {}", Printable(shown, name.size()), Shown(before), Shown(after)));
    return;
  }
  std::set<std::string> keys;
  for (const json* const object : {&before, &after}) {
    for (const auto& [key, value] : object->items())
      keys.insert(key);
  }
  for (const std::string& key : keys) {
    const json& present = after.contains(key) ? after.at(key) : before.at(key);
    Compare(name.empty() ? key : name + '.' + key, before.value(key, DefaultOf(present)),
            after.value(key, DefaultOf(present)), lines);
  }
}

}  // namespace

std::vector<std::string> Differences(const json& before, const json& after) {
  std::vector<std::string> lines;
  Compare("", before, after, lines);
  return lines;
}

}  // namespace resmgr::dump
