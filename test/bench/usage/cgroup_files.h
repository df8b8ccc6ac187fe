// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace resmgr::bench {

// Writes a file, and makes the directories that lead to it.
void PutFile(const std::filesystem::path& file, const std::string& text);

// The files of a container's cgroup that samples of use read: texts as long as the kernel's, of
// cgroup v2 on a machine of 64 CPUs and four nodes.
void PutContainerCgroup(const std::filesystem::path& directory);

}  // namespace resmgr::bench
