// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The file's name in the directory that a container has mounted.
inline constexpr std::string_view kCpuFileName = "cpus.env";

// The text of the file (docs/cpu-file.md, pkg/adr/0008-cpu-file.md): lines NAME=LIST, which a shell
// can source, with lists as the kernel writes them ("0,3-7", "" for none). `exclusive` is a part of
// `cpus`.
std::string CpuFileText(const CpuSet& cpus, const CpuSet& exclusive, const NodeSet& mems);

// The name of a container's directory on the host, known before the runtime gives an id: that of
// its pod sandbox, its own name and its attempt, "SANDBOX_NAME_ATTEMPT", with all but letters,
// digits and "-" of the first two as %XX. No two containers have the same. Empty if it would be
// longer than file systems allow, which names of Kubernetes never are.
std::string CpuFileDirectoryName(std::string_view sandbox, std::string_view container,
                                 uint32_t attempt);
// The beginning of that name which all containers of the sandboxes with this beginning of an id
// have, and its end which all with this name and attempt have.
std::string CpuFileDirectoryPrefix(std::string_view sandbox);
std::string CpuFileDirectorySuffix(std::string_view container, uint32_t attempt);

}  // namespace resmgr
