// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// The files that tell containers their CPUs (pkg/cpufile).
struct CpuFilesConfig {
  // Which containers get one when they are created: none; those whose annotation says so; all but
  // those whose annotation says no.
  enum class Containers { kNone, kAnnotated, kAll };

  Containers containers = Containers::kNone;
  // The directory in the container where it is.
  std::string mount_path = "/run/cri-resmgr";

  friend bool operator==(const CpuFilesConfig&, const CpuFilesConfig&) = default;
};

// Reads the module `cpuFiles`.
void ReadCpuFiles(MapReader& files, CpuFilesConfig& config);
// The same, for printing: with every option.
ConfigNode CpuFilesNode(const CpuFilesConfig& config);

// InvalidArgument: not an absolute path without ".", ".." and empty names, one that a list of
// Docker's mounts cannot hold, "/", or in a file system of the kernel's (/dev, /proc, /sys).
Status CheckMountPath(std::string_view path);

}  // namespace resmgr
