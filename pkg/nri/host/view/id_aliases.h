// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"

namespace resmgr::nri {

// The id by which plugins know a container. NRI shows a container before the runtime creates it,
// and behind a relay the runtime's id is unknown until then; plugins store data by the id, so it
// must not change. It is computed from the container's name within its sandbox, which runtimes keep
// unique and list, so a restarted daemon computes the same id without a file. 64 hexadecimal
// digits, as runtimes' ids have.
std::string AliasOf(const PodSandboxId& pod, std::string_view name, uint32_t attempt);

}  // namespace resmgr::nri
