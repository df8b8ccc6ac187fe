// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/topology/mount_table.h"

namespace resmgr::nri {

// Resolves paths of the node. The daemon may have mounts of its own that hide the node's, as a
// systemd unit with PrivateTmp has, and may lack the right to use another process' root.
class NodePaths {
 public:
  struct Options {
    // The mounts of the node, and those of this process; both outlive this object.
    const MountTable& node;
    const MountTable& own;
    // The node's root directory; "" if it is the process' own, or cannot be reached. In that case
    // only files that are the same by both mount tables count.
    std::string root{};
  };

  explicit NodePaths(const Options& options) : options_(options) {}

  // The absolute path without symbolic links, empty parts, "." and "..". Parts that do not exist
  // are kept. nullopt: unknown. May block.
  std::optional<std::string> Resolve(std::string_view path) const;

 private:
  std::optional<std::string> Walk(std::string path) const;
  // Whether the node has the same file there as this process.
  bool IsNodes(std::string_view path) const;

  const Options options_;
};

// The value of NodePaths::root: "/proc/1/root", or "".
std::string NodeRoot();

}  // namespace resmgr::nri
