// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::nri {

// An executable plugin and its configuration.
struct PluginFile {
  std::string path;
  std::string index;
  std::string name;
  std::string config;

  friend bool operator==(const PluginFile&, const PluginFile&) = default;
};

inline constexpr size_t kMostPluginFiles = 32;
inline constexpr size_t kLongestPluginConfig = size_t{1} << 20;

struct PluginNames {
  std::vector<std::string> files;     // names in the directory, by index and name
  std::vector<std::string> warnings;  // printable reasons why others are left out
};

// Lists the executables in the directory, at most kMostPluginFiles. A missing directory has none.
// May block on the disk.
PluginNames ListPluginFiles(const std::string& plugin_path);

// The plugin of an executable "NN-name", configured with "NN-name.conf" or else "name.conf" of
// `config_path` (NRI 0.6); if `config_path` is "", without a configuration. An error: the name or
// the configuration is not valid, or the file is a WebAssembly module, which NRI 0.9 and later know
// and nothing here can run. May block on the disk, but waits for no writer of a FIFO.
StatusOr<PluginFile> ReadPluginFile(const std::string& plugin_path, const std::string& file,
                                    const std::string& config_path);

}  // namespace resmgr::nri
