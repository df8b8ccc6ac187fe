// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/topology/mount_table.h"

namespace resmgr::nri {

// Where paths of the node lead. The daemon may have mounts of its own that hide the node's, as a
// unit of systemd with PrivateTmp has, and may lack the right to look through another process'
// root.
class NodePaths {
 public:
  struct Options {
    // The node's mounts, and those of the process that looks; both outlive it.
    const MountTable& node;
    const MountTable& own;
    // The node's root directory: "" where that is the process' own, or cannot be reached. Then
    // only what is the same file by both tables of mounts is believed.
    std::string root{};
  };

  explicit NodePaths(const Options& options) : options_(options) {}

  // The path without symbolic links, empty parts, "." and "..", absolute. Parts that do not exist
  // stay as they are. nullopt: it cannot be told. May block.
  std::optional<std::string> Resolve(std::string_view path) const;

 private:
  std::optional<std::string> Walk(std::string path) const;
  // Whether the node has the same file there as this process sees.
  bool IsNodes(std::string_view path) const;

  const Options options_;
};

// What to give NodePaths as root: "/proc/1/root", or "".
std::string NodeRoot();

}  // namespace resmgr::nri
