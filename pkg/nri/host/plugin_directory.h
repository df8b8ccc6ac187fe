// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace resmgr::nri {

// An executable that is a plugin, and what it is configured with.
struct PluginFile {
  std::string path;
  std::string index;
  std::string name;
  std::string config;

  friend bool operator==(const PluginFile&, const PluginFile&) = default;
};

struct PluginDirectory {
  std::vector<PluginFile> plugins;    // by index and name
  std::vector<std::string> warnings;  // why the others are left out, fit for a log
};

// The plugins that are to be started: executables "NN-name" in `plugin_path`, each configured with
// "NN-name.conf" or else "name.conf" of `config_path` (NRI 0.6); "": with nothing. A file that
// cannot be one is left out, and costs the others nothing; so is a WebAssembly module, which NRI
// knows since 0.9 and nothing here can run. There may be no such directory. Reads files, so it may
// block.
inline constexpr size_t kMostPluginFiles = 32;
inline constexpr size_t kLongestPluginConfig = size_t{1} << 20;
PluginDirectory ReadPluginDirectory(const std::string& plugin_path, const std::string& config_path);

}  // namespace resmgr::nri
