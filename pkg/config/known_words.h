// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/base/suggest.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// `"x" is not one of a, b; did you mean a?`: the end of a message about a value that has to be one
// of these words. An empty word is not listed.
inline std::string NotOneOf(std::string_view given, std::vector<std::string_view> words) {
  std::erase(words, std::string_view());
  return fmt::format("\"{}\" is not one of {}{}", Printable(given, 64), fmt::join(words, ", "),
                     DidYouMean(given, words));
}

// Words and their values.
template <typename Value, size_t Count>
using WordTable = std::array<std::pair<std::string_view, Value>, Count>;

// NotOneOf for the words of a table.
template <typename Value, size_t Count>
std::string NotOneOf(std::string_view given, const WordTable<Value, Count>& table) {
  std::vector<std::string_view> words;
  words.reserve(Count);
  for (const auto& [word, value] : table)
    words.push_back(word);
  return NotOneOf(given, std::move(words));
}

template <typename Value, size_t Count>
std::optional<Value> ValueOf(std::string_view word, const WordTable<Value, Count>& table) {
  const auto known = std::ranges::find(table, word, &std::pair<std::string_view, Value>::first);
  return known == table.end() ? std::nullopt : std::optional(known->second);
}

template <typename Value, size_t Count>
std::string_view WordOf(Value value, const WordTable<Value, Count>& table) {
  const auto known = std::ranges::find(table, value, &std::pair<std::string_view, Value>::second);
  return known == table.end() ? "unknown" : known->first;
}

// A list of flags, each of which is kept once. `names` are the present ones; `plain` makes the word
// of a table from what users write.
template <typename Flag, size_t Count>
void DescribeFlags(ConfigSection& section, std::vector<std::string> names,
                   const WordTable<Flag, Count>& table, std::string (*plain)(std::string_view),
                   std::vector<Flag>& flags, std::string_view help) {
  section.List("flags", names, help);
  flags.clear();
  for (const std::string& name : names) {
    const std::optional<Flag> flag = ValueOf(plain(name), table);
    if (!flag) {
      section.Fail("flags", NotOneOf(name, table));
    } else if (std::ranges::find(flags, *flag) == flags.end()) {
      flags.push_back(*flag);
    }
  }
}

// Refuses classes in the list of this key that have no name, or the name of another one.
template <typename Class>
void CheckClassNames(ConfigSection& section, std::string_view key,
                     const std::vector<Class>& classes) {
  const ConfigNode* const node = section.Node(key);
  if (node == nullptr) return;
  std::set<std::string_view> names;
  for (const Class& one : classes) {
    if (one.name.empty()) section.Fail(*node, key, "a class has no name");
    if (!one.name.empty() && !names.insert(one.name).second)
      section.Fail(*node, key, fmt::format("\"{}\" is there twice", one.name));
  }
}

// Whether a class can have this name. InvalidArgument: it does not have 1 to 63 printable ASCII
// characters.
Status CheckClassName(std::string_view name);

}  // namespace resmgr
