// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::hooks {

// A file of the hook directory with its present text.
struct HookFileText {
  std::string name;            // "koordlet.json"
  StatusOr<std::string> text;  // or the reason why it cannot be read
  // Too many files precede it, so it is not used: only its failure policy counts.
  bool beyond_limit = false;
};

// Limits of used files, and of read files.
inline constexpr size_t kMostHookFiles = 64;
inline constexpr size_t kMostHookFilesRead = 256;

// The files whose names end in ".json" and do not begin with a dot, in the order of their names: at
// most kMostHookFilesRead of them, followed by one without text if there are more. Symbolic links
// are followed, as ConfigMaps need. An entry that is not a regular file, or is longer than
// kLongestHookFile, has a status instead of its text; a file that is gone when it is opened is left
// out. An absent directory has no files. Blocks on the disk, but never waits for a writer of a
// FIFO.
StatusOr<std::vector<HookFileText>> ReadHookDirectory(const std::string& path);

}  // namespace resmgr::hooks
