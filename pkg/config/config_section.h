// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// A value of an enumeration, and the word for it.
template <typename T>
struct ConfigWord {
  std::string_view text;
  T value;
};

// One map of a configuration. A function describes each of its keys once, with the variable that
// the key sets, and serves two purposes:
//
//   void DescribeAudit(ConfigSection& audit, AuditConfig& config) {
//     audit.Bool("Repair", config.repair, "whether decided values are sent again");
//   }
//   ConfigSection reader(node, "audit");   // sets `config` as the text says
//   DescribeAudit(reader, config);
//   RESMGR_RETURN_IF_ERROR(reader.Finish());
//   ConfigSection writer(keys);            // adds the keys with the values of `config` to `keys`
//   DescribeAudit(writer, config);
//
// Reading is strict: every key must be known and its value of the right type and in range. Keys
// match without regard to case; messages show the path in the spelling given here. An absent, null
// or invalid value leaves its target unchanged. All errors are collected; a null node is an empty
// map. The node or the keys must outlive the section. Thread-compatible.
class ConfigSection {
 public:
  // Read a value. The text of an error follows the value's place in the message. `origin` is that
  // place, "FILE:LINE: path", for later messages.
  using TextParser = std::function<Status(std::string_view text)>;
  using NodeParser = std::function<Status(const ConfigNode& value, const std::string& origin)>;

  ConfigSection(const ConfigNode& node, std::string_view path);
  explicit ConfigSection(std::vector<ConfigKey>& keys) : keys_(&keys) {}

  ConfigSection& Bool(std::string_view key, bool& target, std::string_view help);
  // An integer within [min, max].
  ConfigSection& Int(std::string_view key, int64_t min, int64_t max, int64_t& target,
                     std::string_view help);
  // A duration in Kubernetes' form ("90s", "500ms"), within [min, max]. `none`, if not empty, is
  // the word for 0.
  ConfigSection& Duration(std::string_view key, std::chrono::milliseconds min,
                          std::chrono::milliseconds max, std::chrono::milliseconds& target,
                          std::string_view help, std::string_view none = "");
  // A duration that may be unset; `min` is more than 0.
  ConfigSection& Duration(std::string_view key, std::chrono::milliseconds min,
                          std::chrono::milliseconds max,
                          std::optional<std::chrono::milliseconds>& target, std::string_view help);
  // A text that `check` accepts.
  ConfigSection& Text(std::string_view key, std::string& target, std::string_view help,
                      const TextParser& check = nullptr);
  // A single value with its own syntax. `shown` is its present text; nullopt: it is unset.
  ConfigSection& Parse(std::string_view key, std::optional<std::string> shown,
                       const TextParser& parse, std::string_view help);
  // As above; `read` makes the target of the text.
  template <typename T, typename Read>
  ConfigSection& Parse(std::string_view key, std::optional<std::string> shown, T& target,
                       const Read& read, std::string_view help) {
    const auto parse = [&](std::string_view text) -> Status {
      RESMGR_ASSIGN_OR_RETURN(target, read(text));
      return OkStatus();
    };
    return Parse(key, std::move(shown), parse, help);
  }
  // One of several words, which may be in any case.
  template <typename T>
  ConfigSection& Choice(std::string_view key, std::initializer_list<ConfigWord<T>> words, T& target,
                        std::string_view help) {
    ConfigKey described{std::string(key), ConfigKey::Kind::kChoice, std::string(help)};
    for (const ConfigWord<T>& word : words) {
      if (word.value == target) described.value = ScalarNode(word.text);
      described.choices.emplace_back(word.text);
    }
    return Word(std::move(described),
                [&](size_t index) { target = (words.begin() + index)->value; });
  }
  // As above, with the words that ToString returns.
  template <typename T>
  requires std::is_enum_v<T> ConfigSection& Choice(std::string_view key,
                                                   std::initializer_list<T> values, T& target,
                                                   std::string_view help) {
    ConfigKey described{std::string(key), ConfigKey::Kind::kChoice, std::string(help),
                        ScalarNode(ToString(target))};
    for (const T value : values)
      described.choices.emplace_back(ToString(value));
    return Word(std::move(described), [&](size_t index) { target = *(values.begin() + index); });
  }
  // A list of single values, or a single value alone.
  ConfigSection& List(std::string_view key, std::vector<std::string>& target,
                      std::string_view help);
  // Any value, null included.
  ConfigSection& Value(std::string_view key, std::optional<ConfigNode> shown,
                       const NodeParser& parse, std::string_view help);
  // Any value, kept unread in `raw` under the key.
  ConfigSection& Raw(std::string_view key, std::map<std::string, ConfigNode, std::less<>>& raw,
                     std::string_view help);
  ConfigSection& Map(std::string_view key, const std::function<void(ConfigSection&)>& describe,
                     std::string_view help = "");
  // A map that may be unset: it is set by a map that has a key.
  template <typename T>
  ConfigSection& Map(std::string_view key, std::optional<T>& target,
                     void (*describe)(ConfigSection&, T&)) {
    T value = target.value_or(T());
    Map(key, [&](ConfigSection& section) { describe(section, value); });
    const ConfigNode* const given = Node(key);
    if (given != nullptr && !given->entries.empty()) target = std::move(value);
    if (keys_ != nullptr && !target) Unset(keys_->back());
    return *this;
  }
  // A list of maps. Each item is a copy of `initial` before its keys are read.
  template <typename Item>
  ConfigSection& Items(std::string_view key, std::vector<Item>& items, const Item& initial,
                       const std::function<void(ConfigSection&, Item&)>& describe,
                       std::string_view help) {
    const auto each = [&](size_t index, ConfigSection& section) {
      if (section.keys_ == nullptr) return describe(section, items.emplace_back(initial));
      Item shown = index < items.size() ? items[index] : initial;
      describe(section, shown);
    };
    return ItemList({std::string(key), ConfigKey::Kind::kItems, std::string(help)}, items.size(),
                    each);
  }
  // A map of maps, whose keys are names chosen by the user, case-sensitive; `entry_name` stands for
  // one of them in the documentation. An error that `check` or `describe` returns is about the
  // name, and then the entry's own keys are not checked.
  template <typename Entry>
  ConfigSection& Each(
      std::string_view key, std::string_view entry_name,
      std::map<std::string, Entry, std::less<>>& entries,
      const std::function<Status(std::string_view name)>& check,
      const std::function<Status(std::string_view name, ConfigSection&, Entry&)>& describe,
      std::string_view help) {
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (const auto& entry : entries)
      names.push_back(entry.first);
    return Entries({std::string(key), ConfigKey::Kind::kNames, std::string(help)}, entry_name,
                   names, [&](std::string_view name, ConfigSection& section) -> Status {
                     if (section.keys_ == nullptr) {
                       RESMGR_RETURN_IF_ERROR(check(name));
                       return describe(name, section, entries[std::string(name)]);
                     }
                     Entry none{};
                     const auto found = entries.find(name);
                     return describe(name, section, found == entries.end() ? none : found->second);
                   });
  }

  // Flag adds a daemon's flag that sets the last key, too (ConfigKey); "a|b" as the name of its
  // value lists all words. Default adds a text for the default, for the documentation, if the value
  // does not show it.
  ConfigSection& Flag(std::string_view name, std::string_view value_name,
                      std::function<StatusOr<std::string>(std::string_view)> text_of = nullptr);
  ConfigSection& Default(std::string_view text);
  // Says that the last key, a map, also takes keys of the user's choice with lists.
  ConfigSection& FreeNames();

  // Describes values whose keys are those of another section.
  void Show(const std::map<std::string, ConfigNode, std::less<>>& values);
  // When reading, refuses a key that belongs elsewhere.
  void Refuse(std::string_view key, std::string_view why);
  // When reading, the unparsed value; nullptr if the key is absent.
  const ConfigNode* Node(std::string_view key);
  // Records an error about a key's value.
  void Fail(const ConfigNode& value, std::string_view key, std::string_view message);
  // Records an error about a key that may be absent. Only when reading.
  void Fail(std::string_view key, std::string_view message);
  // Called after the last key: returns all errors, one per line (Problems), including unknown
  // keys.
  Status Finish();

 private:
  // nullptr if the key is absent, null, or of another kind, which is recorded as an error.
  const ConfigNode* Find(std::string_view key, ConfigNode::Kind kind);
  ConfigSection& Scalar(ConfigKey key, const TextParser& parse);
  ConfigSection& Word(ConfigKey key, const std::function<void(size_t index)>& set);
  // When describing, adds an entry for each of `names`, or one for any name; when reading, reads
  // all entries.
  ConfigSection& Entries(
      ConfigKey key, std::string_view entry_name, const std::vector<std::string>& names,
      const std::function<Status(std::string_view name, ConfigSection& entry)>& describe);
  // When describing, adds the first `count` items and an initial one; when reading, reads all
  // items.
  ConfigSection& ItemList(ConfigKey key, size_t count,
                          const std::function<void(size_t index, ConfigSection& item)>& describe);
  std::string PathOf(std::string_view key) const;

  const ConfigNode* node_ = nullptr;        // for reading
  std::vector<ConfigKey>* keys_ = nullptr;  // for describing
  std::string path_;
  std::vector<std::string> known_;
  Problems problems_;
};

// The text of a value for ConfigSection::Parse; nullopt if it is unset. `unit` is put behind it.
template <typename T>
std::optional<std::string> ShownValue(const std::optional<T>& value, std::string_view unit = "") {
  return value ? std::optional(fmt::format("{}{}", *value, unit)) : std::nullopt;
}
// The same of a text, which is unset if it is empty.
inline std::optional<std::string> ShownText(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// The items of a list of single values, or one single value; a null node has none.
StatusOr<std::vector<std::string>> TextsOf(const ConfigNode& value);

// Reads a section, which may be nullptr, with `describe`. `keys`, unless nullptr, gets the
// section's description with the values that were read.
template <typename Options>
StatusOr<Options> ReadSection(const ConfigNode* section, std::string_view path,
                              void (*describe)(ConfigSection&, Options&),
                              std::vector<ConfigKey>* keys) {
  const ConfigNode nothing;
  Options options;
  ConfigSection reader(section == nullptr ? nothing : *section, path);
  describe(reader, options);
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  if (keys != nullptr) {
    ConfigSection writer(*keys);
    describe(writer, options);
  }
  return options;
}

}  // namespace resmgr
