// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// One value of a configuration text, independent of the parsing library. A plain value; copies
// share only the name of the source.
struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;               // the text of a scalar; numbers and bools as written
  bool quoted = false;            // for a scalar: it was in quotes
  std::vector<ConfigNode> items;  // for a list
  std::vector<Entry> entries;     // for a map, in the order of the text; keys are unique
  int line = 1;                   // first line, counted from 1; 0: `source` is the whole origin
  int column = 1;
  std::shared_ptr<const std::string> source;  // file or ConfigMap key, for messages
};

struct ConfigNode::Entry {
  std::string key;
  int line = 1;
  ConfigNode value;
};

// Nodes without a source text.
ConfigNode ScalarNode(std::string_view text);
ConfigNode ListNode(const std::vector<std::string>& texts);
ConfigNode MapNode(std::vector<ConfigNode::Entry> entries);

// The value of a map's key, whose name matches without regard to case; nullptr if there is none, or
// `map` is not a map.
const ConfigNode* FindKey(const ConfigNode& map, std::string_view key);

// As above, but the name matches exactly.
const ConfigNode* FindMember(const ConfigNode& map, std::string_view key);

// The place for messages: "FILE:LINE".
std::string Where(const ConfigNode& node);

// The beginning of messages about the value of a key: "FILE:LINE: path", or a flag.
std::string OriginOf(const ConfigNode& node, std::string_view path);

// kInvalidArgument "FILE:LINE: path: message", the one form of all configuration errors; `path`,
// for example "policy.ReservedResources.CPU", may be empty.
Status ErrorAt(const ConfigNode& node, std::string_view path, std::string_view message);

// A noun for messages: "a map", ...
std::string_view ToString(ConfigNode::Kind kind);

// Collects the mistakes of a configuration, so that its author sees all at once. A plain value.
class Problems {
 public:
  // Limit of reported problems: a text that is not a configuration at all would have thousands.
  static constexpr size_t kMost = 20;

  // Adds a status that is not OK. The status of other Problems adds all of theirs. `origin` is put
  // before each.
  void Add(const Status& status, std::string_view origin = "");
  // False if further problems would not be reported, so that their messages need not be made.
  bool open() const { return lines_.size() < kMost; }

  // OK if there are no problems; else kInvalidArgument with one line for each, in their order.
  Status ToStatus() const;

 private:
  std::vector<std::string> lines_;
  bool more_ = false;
};

// The message of ToStatus as one line for the log.
std::string OneLine(std::string_view message);

// Splits every key of the root that has dots: {"policy.Active": x} becomes {"policy": {"Active":
// x}}, merged with an existing "policy". Names match without regard to case. A key is left out and
// reported as a problem if its place has a value already, if it is below something that is not a
// map, or if more than 20,000 maps would be made. A root that is not a map is returned unchanged.
// Takes time in proportion to the tree.
ConfigNode ExpandDottedKeys(ConfigNode root, Problems& problems);

}  // namespace resmgr
