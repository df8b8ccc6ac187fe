// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_section.h"

#include <algorithm>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/known_words.h"
#include "pkg/kube/quantity.h"

namespace resmgr {
namespace {

using Kind = ConfigKey::Kind;

// The index of the word in any case, words.size() if it is none of them.
size_t IndexOf(const std::vector<std::string>& words, std::string_view text) {
  const auto found = std::ranges::find_if(
      words, [text](std::string_view word) { return EqualsIgnoreCase(word, text); });
  return static_cast<size_t>(found - words.begin());
}

}  // namespace

ConfigSection::ConfigSection(const ConfigNode& node, std::string_view path)
    : node_(&node), path_(path) {
  if (node.kind != ConfigNode::Kind::kMap && node.kind != ConfigNode::Kind::kNull) {
    problems_.Add(ErrorAt(node, path_, fmt::format("must be a map, not {}", ToString(node.kind))));
  }
}

std::string ConfigSection::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void ConfigSection::Fail(const ConfigNode& value, std::string_view key, std::string_view message) {
  problems_.Add(ErrorAt(value, PathOf(key), message));
}

void ConfigSection::Fail(std::string_view key, std::string_view message) {
  if (node_ == nullptr) return;
  const ConfigNode* const value = Node(key);
  Fail(value == nullptr ? *node_ : *value, key, message);
}

const ConfigNode* ConfigSection::Node(std::string_view key) {
  if (node_ == nullptr) return nullptr;
  const bool first = std::ranges::find(known_, key) == known_.end();
  if (first) known_.emplace_back(key);
  const ConfigNode* found = nullptr;
  for (const ConfigNode::Entry& entry : node_->entries) {
    if (!EqualsIgnoreCase(entry.key, key)) continue;
    if (found == nullptr) {
      found = &entry.value;
    } else if (first) {
      Fail(entry.value, key, "is given twice");
    }
  }
  return found;
}

const ConfigNode* ConfigSection::Find(std::string_view key, ConfigNode::Kind kind) {
  const ConfigNode* value = Node(key);
  if (value == nullptr || value->kind == ConfigNode::Kind::kNull) return nullptr;
  if (value->kind == kind) return value;
  Fail(*value, key, fmt::format("must be {}, not {}", ToString(kind), ToString(value->kind)));
  return nullptr;
}

ConfigSection& ConfigSection::Scalar(ConfigKey key, const TextParser& parse) {
  if (keys_ != nullptr) {
    keys_->push_back(std::move(key));
  } else if (const ConfigNode* value = Find(key.name, ConfigNode::Kind::kScalar)) {
    problems_.Add(parse(value->text), OriginOf(*value, PathOf(key.name)));
  }
  return *this;
}

ConfigSection& ConfigSection::Bool(std::string_view key, bool& target, std::string_view help) {
  return Scalar(
      {std::string(key), Kind::kBool, std::string(help), ScalarNode(target ? "true" : "false")},
      [&target](std::string_view text) -> Status {
        const std::optional<bool> parsed = ParseBool(text);
        target = parsed.value_or(target);
        if (parsed) return OkStatus();
        return InvalidArgument("\"{}\" is not true or false", Printable(text, 64));
      });
}

ConfigSection& ConfigSection::Int(std::string_view key, int64_t min, int64_t max, int64_t& target,
                                  std::string_view help) {
  ConfigKey described{std::string(key), Kind::kInt, std::string(help),
                      ScalarNode(fmt::format("{}", target))};
  described.min = min;
  described.max = max;
  return Scalar(std::move(described), [&](std::string_view text) -> Status {
    const std::optional<int64_t> parsed = ParseInt(text);
    if (!parsed || *parsed < min || *parsed > max) {
      return InvalidArgument("\"{}\" is not a whole number from {} to {}", Printable(text, 64), min,
                             max);
    }
    target = *parsed;
    return OkStatus();
  });
}

ConfigSection& ConfigSection::Duration(std::string_view key, std::chrono::milliseconds min,
                                       std::chrono::milliseconds max,
                                       std::chrono::milliseconds& target, std::string_view help,
                                       std::string_view none) {
  const bool is_none = !none.empty() && target.count() == 0;
  ConfigKey described{std::string(key), Kind::kText, std::string(help),
                      ScalarNode(is_none ? std::string(none) : DurationText(target))};
  described.pattern = fmt::format("^({}{}(([0-9]+[.]?[0-9]*|[.][0-9]+)(h|m|s|ms))+)$", none,
                                  none.empty() ? "" : "|");
  return Scalar(std::move(described), [&](std::string_view text) -> Status {
    const bool read_none = !none.empty() && text == none;
    const auto parsed = read_none ? std::chrono::milliseconds(0) : ParseDuration(text, max);
    if (!parsed || (*parsed < min && !read_none)) {
      return InvalidArgument("\"{}\" is not a time from {} to {}, as in 1m30s{}",
                             Printable(text, 64), DurationText(min), DurationText(max),
                             none.empty() ? std::string() : fmt::format(", and not \"{}\"", none));
    }
    target = *parsed;
    return OkStatus();
  });
}

ConfigSection& ConfigSection::Duration(std::string_view key, std::chrono::milliseconds min,
                                       std::chrono::milliseconds max,
                                       std::optional<std::chrono::milliseconds>& target,
                                       std::string_view help) {
  auto value = target.value_or(std::chrono::milliseconds(0));
  Duration(key, min, max, value, help);
  if (value.count() > 0) target = value;
  if (keys_ != nullptr && !target) keys_->back().value.reset();
  return *this;
}

ConfigSection& ConfigSection::Text(std::string_view key, std::string& target, std::string_view help,
                                   const TextParser& check) {
  const auto read = [&](std::string_view text) {
    target = text;
    return check ? check(text) : OkStatus();
  };
  return Parse(key, target, read, help);
}

ConfigSection& ConfigSection::Parse(std::string_view key, std::optional<std::string> shown,
                                    const TextParser& parse, std::string_view help) {
  ConfigKey described{std::string(key), Kind::kText, std::string(help)};
  if (shown) {
    described.value = ScalarNode(*shown);
    // A text that looks like a boolean must be printed in quotes, to be read as a text.
    described.value->quoted = ParseBool(*shown).has_value();
  }
  return Scalar(std::move(described), parse);
}

ConfigSection& ConfigSection::Word(ConfigKey key, const std::function<void(size_t index)>& set) {
  const std::vector<std::string> words = key.choices;
  return Scalar(std::move(key), [&](std::string_view text) -> Status {
    const size_t index = IndexOf(words, text);
    if (index == words.size()) {
      return InvalidArgument("{}", NotOneOf(text, {words.begin(), words.end()}));
    }
    set(index);
    return OkStatus();
  });
}

ConfigSection& ConfigSection::List(std::string_view key, std::vector<std::string>& target,
                                   std::string_view help) {
  const auto read = [&target](const ConfigNode& value, const std::string&) -> Status {
    if (value.kind == ConfigNode::Kind::kNull) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(target, TextsOf(value));
    return OkStatus();
  };
  return Value(key, ListNode(target), read, help).Default(target.empty() ? "none" : "");
}

ConfigSection& ConfigSection::Value(std::string_view key, std::optional<ConfigNode> shown,
                                    const NodeParser& parse, std::string_view help) {
  if (keys_ != nullptr) {
    const auto kind = shown ? shown->kind : ConfigNode::Kind::kScalar;
    keys_->push_back({std::string(key),
                      kind == ConfigNode::Kind::kList  ? Kind::kList
                      : kind == ConfigNode::Kind::kMap ? Kind::kNames
                                                       : Kind::kAny,
                      std::string(help), std::move(shown)});
  } else if (const ConfigNode* value = Node(key)) {
    const std::string origin = OriginOf(*value, PathOf(key));
    problems_.Add(parse(*value, origin), origin);
  }
  return *this;
}

ConfigSection& ConfigSection::Raw(std::string_view key,
                                  std::map<std::string, ConfigNode, std::less<>>& raw,
                                  std::string_view help) {
  if (keys_ != nullptr) {
    const auto shown = raw.find(key);
    ConfigKey described{std::string(key), Kind::kRaw, std::string(help)};
    if (shown != raw.end()) described.value = shown->second;
    keys_->push_back(std::move(described));
  } else if (const ConfigNode* value = Node(key)) {
    raw.insert_or_assign(std::string(key), *value);
  }
  return Default("none");
}

ConfigSection& ConfigSection::Map(std::string_view key,
                                  const std::function<void(ConfigSection&)>& describe,
                                  std::string_view help) {
  if (keys_ != nullptr) {
    ConfigKey described{std::string(key), Kind::kMap, std::string(help)};
    ConfigSection section(described.keys);
    describe(section);
    keys_->push_back(std::move(described));
  } else if (const ConfigNode* value = Find(key, ConfigNode::Kind::kMap)) {
    ConfigSection section(*value, PathOf(key));
    describe(section);
    problems_.Add(section.Finish());
  }
  return *this;
}

ConfigSection& ConfigSection::Entries(
    ConfigKey key, std::string_view entry_name, const std::vector<std::string>& names,
    const std::function<Status(std::string_view name, ConfigSection& entry)>& describe) {
  if (keys_ != nullptr) {
    // Errors of `describe`, like a missing key, were returned when the entry was read.
    const auto keys_of = [&describe](std::string_view name) {
      std::vector<ConfigKey> keys;
      ConfigSection entry(keys);
      (void)describe(name, entry);
      return keys;
    };
    key.value = MapNode({});
    for (const std::string& name : names)
      key.value->entries.push_back({name, 1, ValuesOf(keys_of(name))});
    key.keys = keys_of("");
    key.entry_name = entry_name;
    keys_->push_back(std::move(key));
    return Default("none");
  }
  const ConfigNode* const map = Find(key.name, ConfigNode::Kind::kMap);
  if (map == nullptr) return *this;
  const std::string path = PathOf(key.name);
  for (const ConfigNode::Entry& entry : map->entries) {
    const std::string name = entry.key.empty() ? "\"\"" : Printable(entry.key, 64);
    ConfigSection section(entry.value, fmt::format("{}.{}", path, name));
    const Status named = describe(entry.key, section);
    problems_.Add(named.ok() ? section.Finish() : ErrorAt(entry.value, path, Message(named)));
  }
  return *this;
}

ConfigSection& ConfigSection::ItemList(
    ConfigKey key, size_t count,
    const std::function<void(size_t index, ConfigSection& item)>& describe) {
  if (keys_ != nullptr) {
    const auto keys_of = [&describe](size_t index) {
      std::vector<ConfigKey> keys;
      ConfigSection item(keys);
      describe(index, item);
      return keys;
    };
    key.value = ListNode({});
    for (size_t i = 0; i < count; ++i)
      key.value->items.push_back(ValuesOf(keys_of(i)));
    key.keys = keys_of(count);
    keys_->push_back(std::move(key));
    return Default("none");
  }
  const ConfigNode* const list = Find(key.name, ConfigNode::Kind::kList);
  if (list == nullptr) return *this;
  for (size_t i = 0; i < list->items.size(); ++i) {
    ConfigSection item(list->items[i], fmt::format("{}[{}]", PathOf(key.name), i));
    describe(i, item);
    problems_.Add(item.Finish());
  }
  return *this;
}

ConfigSection& ConfigSection::Flag(std::string_view name, std::string_view value_name,
                                   std::function<StatusOr<std::string>(std::string_view)> text_of) {
  if (keys_ == nullptr) return *this;
  ConfigKey& key = keys_->back();
  key.flag = name;
  key.flag_value = value_name;
  key.text_of_flag = std::move(text_of);
  const std::vector<std::string_view> words = Split(value_name, '|');
  if (words.size() > 1) key.choices.assign(words.begin(), words.end());
  return *this;
}

ConfigSection& ConfigSection::Default(std::string_view text) {
  if (keys_ != nullptr) keys_->back().default_text = text;
  return *this;
}

ConfigSection& ConfigSection::FreeNames() {
  if (keys_ != nullptr) keys_->back().free_names = true;
  return *this;
}

void ConfigSection::Show(const std::map<std::string, ConfigNode, std::less<>>& values) {
  if (keys_ == nullptr) return;
  for (const auto& [name, value] : values)
    keys_->push_back({name, Kind::kMap, "", value});
}

void ConfigSection::Refuse(std::string_view key, std::string_view why) {
  if (const ConfigNode* const node = Node(key)) Fail(*node, key, why);
}

Status ConfigSection::Finish() {
  if (node_ == nullptr) return OkStatus();
  // A node that is not a map has no entries: its error was recorded before.
  for (const ConfigNode::Entry& entry : node_->entries) {
    if (IndexOf(known_, entry.key) < known_.size()) continue;
    ConfigNode place;
    place.line = entry.line;
    place.source = entry.value.source;
    // The hint is expensive, so it is computed only for problems that are reported.
    const bool told = problems_.open();
    std::string hint = told ? DidYouMean(entry.key, {known_.begin(), known_.end()}) : "";
    if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(known_, ", "));
    problems_.Add(ErrorAt(place, PathOf(Printable(entry.key, 64)), "unknown key" + hint));
    if (!told) break;
  }
  return problems_.ToStatus();
}

StatusOr<std::vector<std::string>> TextsOf(const ConfigNode& value) {
  std::vector<std::string> texts;
  bool good = value.kind != ConfigNode::Kind::kMap;
  if (value.kind == ConfigNode::Kind::kScalar) texts.push_back(value.text);
  for (const ConfigNode& item : value.items) {
    good = good && item.kind == ConfigNode::Kind::kScalar;
    texts.push_back(item.text);
  }
  if (!good) return InvalidArgument("must be a single value or a list of single values");
  return texts;
}

}  // namespace resmgr
