// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// One value of a configuration text, free of the library that read it. A plain value; small copies
// share nothing but the name of the source.
struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;               // of a scalar; numbers and bools as they were written
  bool quoted = false;            // a scalar that stood in quotes
  std::vector<ConfigNode> items;  // of a list
  std::vector<Entry> entries;     // of a map, in the order of the text; no key stands twice
  int line = 1;                   // where it begins, counted from 1
  int column = 1;
  std::shared_ptr<const std::string> source;  // file or ConfigMap key, for messages
};

struct ConfigNode::Entry {
  std::string key;
  int line = 1;
  ConfigNode value;
};

// Nodes that no text was read for.
ConfigNode ScalarNode(std::string_view text);
ConfigNode ListNode(const std::vector<std::string>& texts);
ConfigNode MapNode(std::vector<ConfigNode::Entry> entries);

// "FILE:LINE".
std::string Where(const ConfigNode& node);

// InvalidArgument "FILE:LINE: path: message", the one form of all configuration errors; `path` as
// in "policy.ReservedResources.CPU", may be empty.
Status ErrorAt(const ConfigNode& node, std::string_view path, std::string_view message);

// "a map", ... for messages.
std::string_view ToString(ConfigNode::Kind kind);

}  // namespace resmgr
