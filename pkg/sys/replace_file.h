// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace resmgr {

// Gives a regular file of the disk, which exists and may belong to another program, a new content.
// Its mode and owner stay, and a symbolic link to it stays one. After an error it has its former
// content. Readers never see a mixture, nor does a kill leave one, unless the file cannot be
// renamed over: it is a mount of its own, or its directory cannot be written. The text goes to
// `<path>.cri-resmgr` first, so a path may have only one writer at a time. Returns 0, or the
// kernel's error number. Blocks.
int ReplaceFile(const std::string& path, std::string_view data);

}  // namespace resmgr
