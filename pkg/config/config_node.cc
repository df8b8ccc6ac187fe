// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/config_node.h"

namespace resmgr {

std::string Where(const ConfigNode& node) {
  return fmt::format("{}:{}", node.source ? *node.source : "configuration", node.line);
}

Status ErrorAt(const ConfigNode& node, std::string_view path, std::string_view message) {
  return InvalidArgument("{}: {}{}{}", Where(node), path, path.empty() ? "" : ": ", message);
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
