// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// Configures the files that tell containers their CPUs (pkg/cpufile).
struct CpuFilesConfig {
  // The containers that get a file when they are created: none; those with an annotation that says
  // yes; all except those with an annotation that says no.
  enum class Containers { kNone, kAnnotated, kAll };

  Containers containers = Containers::kNone;
  // The file's directory in the container.
  std::string mount_path = "/run/cri-resmgr";

  friend bool operator==(const CpuFilesConfig&, const CpuFilesConfig&) = default;
};

// The module `cpuFiles`.
void DescribeCpuFiles(ConfigSection& root, CpuFilesConfig& config);

// kInvalidArgument: not an absolute path without ".", ".." and empty names, one that a list of
// Docker's mounts cannot hold, "/", or in a kernel file system (/dev, /proc, /sys).
Status CheckMountPath(std::string_view path);

}  // namespace resmgr
