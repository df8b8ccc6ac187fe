// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_node.h"

#include <utility>

namespace resmgr {

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

}  // namespace resmgr
