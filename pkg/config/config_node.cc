// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_node.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kMore = "there are more mistakes, which are not listed";

// More names than any key has. The limit keeps the tree within the depth that its readers expect.
constexpr size_t kMaxNames = 16;
// Limit of the maps that dotted keys create: each takes only a few bytes of text.
constexpr size_t kMaxMade = 20'000;

// An entry of the tree under construction. Members that are added below an entry are kept here and
// not in its node, with an index, since there may be many.
struct Place {
  explicit Place(ConfigNode::Entry own) : entry(std::move(own)) {}

  ConfigNode::Entry entry;
  bool opened = false;
  std::vector<std::unique_ptr<Place>> members{};
  std::unordered_map<std::string, Place*> index{};  // by names in lower case

  // Prepares for members; false if the value is not a map.
  bool Open() {
    ConfigNode& value = entry.value;
    if (opened) return true;
    if (value.kind == ConfigNode::Kind::kNull) value.kind = ConfigNode::Kind::kMap;
    if (value.kind != ConfigNode::Kind::kMap) return false;
    opened = true;
    for (ConfigNode::Entry& member : value.entries)
      Add(std::move(member));
    value.entries.clear();
    return true;
  }

  // If two keys differ only in case, the index has the first one; the reader refuses the second.
  Place& Add(ConfigNode::Entry member) {
    members.push_back(std::make_unique<Place>(std::move(member)));
    index.emplace(ToLower(members.back()->entry.key), members.back().get());
    return *members.back();
  }

  Place* Find(std::string_view name) const {
    const auto found = index.find(ToLower(name));
    return found == index.end() ? nullptr : found->second;
  }

  ConfigNode::Entry Close() {
    for (const std::unique_ptr<Place>& member : members)
      entry.value.entries.push_back(member->Close());
    return std::move(entry);
  }
};

class Expansion {
 public:
  explicit Expansion(ConfigNode root) : root_({.key = "", .line = 1, .value = std::move(root)}) {
    root_.Open();
  }

  Status Insert(ConfigNode::Entry entry) {
    const std::vector<std::string_view> names = Split(entry.key, '.');
    ConfigNode at;
    at.line = entry.line;
    at.source = entry.value.source;
    const std::string key = Printable(entry.key, 64);
    const bool has_empty =
        std::any_of(names.begin(), names.end(), [](std::string_view name) { return name.empty(); });
    if (has_empty || names.size() > kMaxNames) return ErrorAt(at, key, "unknown key");
    Place* map = &root_;
    for (size_t i = 0; i + 1 < names.size(); ++i) {
      Place* next = map->Find(names[i]);
      if (next == nullptr) {
        if (++made_ > kMaxMade) return ErrorAt(at, key, "too many values");
        next = &map->Add({.key = std::string(names[i]), .line = entry.line, .value = at});
      }
      if (!next->Open()) return ErrorAt(at, key, "is below a value that is not a map");
      map = next;
    }
    if (map->Find(names.back()) != nullptr) return ErrorAt(at, key, "has two values");
    std::string last(names.back());
    entry.key = std::move(last);
    map->Add(std::move(entry));
    return OkStatus();
  }

  ConfigNode Take() { return root_.Close().value; }

 private:
  Place root_;
  size_t made_ = 0;
};

}  // namespace

ConfigNode ScalarNode(std::string_view text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.text = text;
  return node;
}

ConfigNode ListNode(const std::vector<std::string>& texts) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kList;
  for (const std::string& text : texts)
    node.items.push_back(ScalarNode(text));
  return node;
}

ConfigNode MapNode(std::vector<ConfigNode::Entry> entries) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kMap;
  node.entries = std::move(entries);
  return node;
}

const ConfigNode* FindKey(const ConfigNode& map, std::string_view key) {
  const auto found = std::ranges::find_if(map.entries, [key](const ConfigNode::Entry& entry) {
    return EqualsIgnoreCase(entry.key, key);
  });
  return found == map.entries.end() ? nullptr : &found->value;
}

const ConfigNode* FindMember(const ConfigNode& map, std::string_view key) {
  const auto found = std::ranges::find(map.entries, key, &ConfigNode::Entry::key);
  return found == map.entries.end() ? nullptr : &found->value;
}

std::string Where(const ConfigNode& node) {
  const std::string_view source = node.source ? std::string_view(*node.source) : "configuration";
  return node.line == 0 ? std::string(source) : fmt::format("{}:{}", source, node.line);
}

std::string OriginOf(const ConfigNode& node, std::string_view path) {
  if (path.empty() || node.line == 0) return Where(node);
  return fmt::format("{}: {}", Where(node), path);
}

Status ErrorAt(const ConfigNode& node, std::string_view path, std::string_view message) {
  const std::string origin = OriginOf(node, path);
  return InvalidArgument("{}{}{}", origin, origin.empty() ? "" : ": ", message);
}

std::string_view ToString(ConfigNode::Kind kind) {
  switch (kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kScalar:
      return "a single value";
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

void Problems::Add(const Status& status, std::string_view origin) {
  if (status.ok()) return;
  for (const std::string_view line : Split(Message(status), '\n')) {
    if (line == kMore || !open()) {
      more_ = true;
    } else {
      lines_.push_back(fmt::format("{}{}{}", origin, origin.empty() ? "" : ": ", line));
    }
  }
}

Status Problems::ToStatus() const {
  if (lines_.empty()) return OkStatus();
  return InvalidArgument("{}{}{}", fmt::join(lines_, "\n"), more_ ? "\n" : "", more_ ? kMore : "");
}

std::string OneLine(std::string_view message) {
  return fmt::format("{}", fmt::join(Split(message, '\n'), "; "));
}

ConfigNode ExpandDottedKeys(ConfigNode root, Problems& problems) {
  const auto is_plain = [](const ConfigNode::Entry& entry) {
    return entry.key.find('.') == std::string::npos;
  };
  const auto first_dotted =
      std::stable_partition(root.entries.begin(), root.entries.end(), is_plain);
  std::vector<ConfigNode::Entry> dotted(std::make_move_iterator(first_dotted),
                                        std::make_move_iterator(root.entries.end()));
  root.entries.erase(first_dotted, root.entries.end());
  if (dotted.empty()) return root;
  Expansion expansion(std::move(root));
  for (ConfigNode::Entry& entry : dotted)
    problems.Add(expansion.Insert(std::move(entry)));
  return expansion.Take();
}

}  // namespace resmgr
