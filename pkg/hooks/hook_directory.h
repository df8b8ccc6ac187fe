// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::hooks {

// A file of the hook directory, as it is at one moment.
struct HookFileText {
  std::string name;            // "koordlet.json"
  StatusOr<std::string> text;  // or why it cannot be read
  // The directory has so many files before it that it is not used: only its failure policy counts.
  bool beyond_limit = false;
};

// Limits of the files that are used, and of the files that are read.
inline constexpr size_t kMostHookFiles = 64;
inline constexpr size_t kMostHookFilesRead = 256;

// The files whose names end in ".json" and do not begin with a dot, in the order of their names, at
// most kMostHookFilesRead of them, and one without text where there are more. Symbolic links are
// followed, as ConfigMaps need. An entry that is no regular file, or is longer than
// kLongestHookFile, has a status in place of its text; a file that is gone when it is opened is
// left out. A directory that is absent has no files. Blocks on the disk; never waits for a writer
// of a FIFO.
StatusOr<std::vector<HookFileText>> ReadHookDirectory(const std::string& path);

}  // namespace resmgr::hooks
