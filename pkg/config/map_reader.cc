// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/map_reader.h"

#include <algorithm>
#include <optional>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/kube/duration.h"

namespace resmgr {

MapReader::MapReader(const ConfigNode& node, std::string_view path, ConfigNode* complete)
    : node_(node), path_(path), complete_(complete) {
  if (complete_ != nullptr) *complete_ = MapNode({});
  if (node.kind != ConfigNode::Kind::kMap && node.kind != ConfigNode::Kind::kNull) {
    problems_.Add(ErrorAt(node, path_, fmt::format("must be a map, not {}", ToString(node.kind))));
  }
}

void MapReader::Tell(std::string_view key, ConfigNode value) {
  if (complete_ != nullptr) complete_->entries.push_back({std::string(key), 1, std::move(value)});
}

std::string MapReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::string MapReader::Origin(const ConfigNode& value, std::string_view key) const {
  return fmt::format("{}: {}", Where(value), PathOf(key));
}

void MapReader::Fail(const ConfigNode& value, std::string_view key, std::string_view message) {
  problems_.Add(ErrorAt(value, PathOf(key), message));
}

const ConfigNode* MapReader::Node(std::string_view key) {
  const bool first = std::find(known_.begin(), known_.end(), key) == known_.end();
  if (first) known_.emplace_back(key);
  const ConfigNode* found = nullptr;
  for (const ConfigNode::Entry& entry : node_.entries) {
    if (!EqualsIgnoreCase(entry.key, key)) continue;
    if (found == nullptr) {
      found = &entry.value;
    } else if (first) {
      Fail(entry.value, key, "is given twice");
    }
  }
  return found;
}

const ConfigNode* MapReader::Find(std::string_view key, ConfigNode::Kind kind) {
  const ConfigNode* value = Node(key);
  if (value == nullptr || value->kind == ConfigNode::Kind::kNull) return nullptr;
  if (value->kind == kind) return value;
  Fail(*value, key, fmt::format("must be {}, not {}", ToString(kind), ToString(value->kind)));
  return nullptr;
}

void MapReader::Bool(std::string_view key, bool& target) {
  if (const ConfigNode* value = Find(key, ConfigNode::Kind::kScalar)) {
    const std::optional<bool> parsed = ParseBool(value->text);
    if (parsed) {
      target = *parsed;
    } else {
      Fail(*value, key, fmt::format("\"{}\" is not true or false", Printable(value->text, 64)));
    }
  }
  Tell(key, ScalarNode(target ? "true" : "false"));
}

void MapReader::Int(std::string_view key, int64_t min, int64_t max, int64_t& target) {
  if (const ConfigNode* value = Find(key, ConfigNode::Kind::kScalar)) {
    const std::optional<int64_t> parsed = ParseInt(value->text);
    if (parsed && *parsed >= min && *parsed <= max) {
      target = *parsed;
    } else {
      Fail(*value, key,
           fmt::format("\"{}\" is not a whole number from {} to {}", Printable(value->text, 64),
                       min, max));
    }
  }
  Tell(key, ScalarNode(fmt::format("{}", target)));
}

void MapReader::Duration(std::string_view key, std::chrono::milliseconds min,
                         std::chrono::milliseconds max, std::chrono::milliseconds& target) {
  if (const ConfigNode* value = Find(key, ConfigNode::Kind::kScalar)) {
    const auto parsed = ParseDuration(value->text, max);
    if (parsed && *parsed >= min) {
      target = *parsed;
    } else {
      Fail(*value, key,
           fmt::format("\"{}\" is not a time from {} to {}, as in 1m30s",
                       Printable(value->text, 64), DurationText(min), DurationText(max)));
    }
  }
  Tell(key, ScalarNode(DurationText(target)));
}

void MapReader::Text(std::string_view key, std::string& target) {
  const ConfigNode* value = Find(key, ConfigNode::Kind::kScalar);
  if (value != nullptr) target = value->text;
  Tell(key, ScalarNode(target));
}

void MapReader::Parse(std::string_view key, const TextParser& parse) {
  const ConfigNode* value = Find(key, ConfigNode::Kind::kScalar);
  if (value == nullptr) return;
  const std::string origin = Origin(*value, key);
  problems_.Add(parse(value->text, origin), origin);
}

void MapReader::Choice(std::string_view key, const std::vector<std::string_view>& choices,
                       std::string& target) {
  if (const ConfigNode* value = Find(key, ConfigNode::Kind::kScalar)) {
    const auto found = std::find_if(
        choices.begin(), choices.end(),
        [value](std::string_view choice) { return EqualsIgnoreCase(choice, value->text); });
    if (found != choices.end()) {
      target = *found;
    } else {
      Fail(*value, key,
           fmt::format("\"{}\" is not one of {}", Printable(value->text, 64),
                       fmt::join(choices, ", ")));
    }
  }
  Tell(key, ScalarNode(target));
}

void MapReader::List(std::string_view key, std::vector<std::string>& target) {
  List(key, [&target](const std::vector<std::string>& texts, const std::string& /*origin*/) {
    target = texts;
    return OkStatus();
  });
  Tell(key, ListNode(target));
}

void MapReader::List(std::string_view key, const ListParser& parse) {
  const ConfigNode* value = Node(key);
  if (value == nullptr || value->kind == ConfigNode::Kind::kNull) return;
  std::vector<std::string> texts;
  bool good = value->kind != ConfigNode::Kind::kMap;
  if (value->kind == ConfigNode::Kind::kScalar) texts.push_back(value->text);
  for (const ConfigNode& item : value->items) {
    good = good && item.kind == ConfigNode::Kind::kScalar;
    texts.push_back(item.text);
  }
  if (!good) {
    Fail(*value, key, "must be a single value or a list of single values");
    return;
  }
  const std::string origin = Origin(*value, key);
  problems_.Add(parse(texts, origin), origin);
}

void MapReader::Map(std::string_view key, const std::function<void(MapReader&)>& read) {
  static const ConfigNode kNothing;
  const ConfigNode* value = Find(key, ConfigNode::Kind::kMap);
  // An absent map has no mistakes, but `complete` needs its options.
  if (value == nullptr && complete_ == nullptr) return;
  ConfigNode complete;
  MapReader reader(value == nullptr ? kNothing : *value, PathOf(key),
                   complete_ == nullptr ? nullptr : &complete);
  read(reader);
  problems_.Add(reader.Finish());
  Tell(key, std::move(complete));
}

void MapReader::Each(std::string_view key,
                     const std::function<Status(std::string_view name, MapReader& entry)>& read) {
  const ConfigNode* value = Find(key, ConfigNode::Kind::kMap);
  if (value == nullptr) return;
  MapReader names(*value, PathOf(key));
  names.EachEntry(read);
  problems_.Add(names.Finish());
}

void MapReader::EachEntry(
    const std::function<Status(std::string_view name, MapReader& entry)>& read) {
  for (const ConfigNode::Entry& entry : node_.entries) {
    known_.push_back(entry.key);
    const std::string name = entry.key.empty() ? "\"\"" : Printable(entry.key, 64);
    MapReader reader(entry.value, PathOf(name));
    const Status named = read(entry.key, reader);
    problems_.Add(named.ok() ? reader.Finish() : ErrorAt(entry.value, path_, Message(named)));
  }
}

void MapReader::EachText(
    std::string_view key,
    const std::function<Status(std::string_view name, std::string_view text)>& parse) {
  const ConfigNode* value = Find(key, ConfigNode::Kind::kMap);
  if (value == nullptr) return;
  for (const ConfigNode::Entry& entry : value->entries) {
    const std::string name = fmt::format("{}.{}", key, Printable(entry.key, 64));
    if (entry.value.kind != ConfigNode::Kind::kScalar) {
      Fail(entry.value, name,
           fmt::format("must be a single value, not {}", ToString(entry.value.kind)));
      continue;
    }
    problems_.Add(parse(entry.key, entry.value.text), Origin(entry.value, name));
  }
}

Status MapReader::Finish() {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  // Only a map has keys.
  for (const ConfigNode::Entry& entry : node_.entries) {
    const bool found = std::any_of(known.begin(), known.end(), [&entry](std::string_view key) {
      return EqualsIgnoreCase(key, entry.key);
    });
    if (found) continue;
    ConfigNode place;
    place.line = entry.line;
    place.source = entry.value.source;
    // The hint is expensive, so it is computed only for problems that are reported.
    const bool told = problems_.open();
    std::string hint = told ? DidYouMean(entry.key, known) : "";
    if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(known, ", "));
    problems_.Add(ErrorAt(place, PathOf(Printable(entry.key, 64)), "unknown key" + hint));
    if (!told) break;
  }
  return problems_.ToStatus();
}

}  // namespace resmgr
