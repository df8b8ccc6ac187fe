// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The place for messages: "FILE:LINE".
std::string Where(const ConfigNode& node);

// The beginning of messages about the value of a key: "FILE:LINE: path", or a flag.
std::string OriginOf(const ConfigNode& node, std::string_view path);

// kInvalidArgument "FILE:LINE: path: message", the one form of all configuration errors; `path`,
// for example "policy.ReservedResources.CPU", may be empty.
Status ErrorAt(const ConfigNode& node, std::string_view path, std::string_view message);

// A noun for messages: "a map", ...
std::string_view ToString(ConfigNode::Kind kind);

}  // namespace resmgr
