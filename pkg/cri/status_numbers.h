// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/model/cpu_numbers.h"

namespace resmgr {

// A ContainerStatusResponse with other CPU numbers in status.resources.linux: `edit` gets the
// reported ones. All other bytes stay, also unknown fields. If `edit` resets `shares_in_file`, the
// files that set the shares are removed. nullopt: nothing changes, for example without resources,
// or in a malformed reply.
std::optional<std::string> WithCpuNumbers(std::string_view response,
                                          const std::function<void(CpuNumbers&)>& edit);

}  // namespace resmgr
