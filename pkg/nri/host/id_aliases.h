// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"

namespace resmgr::nri {

// The id that plugins know a container by. NRI tells of a container before the runtime creates it,
// and behind a relay the runtime's id is not known by then; plugins keep what they know by the id,
// so it must not change. It follows from what names a container within its sandbox, which runtimes
// keep unique and list: so a daemon that starts anew gives the same one, with nothing on disk.
// 64 hexadecimal digits, as runtimes' ids are.
std::string AliasOf(const PodSandboxId& pod, std::string_view name, uint32_t attempt);

}  // namespace resmgr::nri
