// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/model/cpu_numbers.h"

namespace resmgr {

// A ContainerStatusResponse with other numbers of the container's CPU in status.resources.linux:
// `edit` gets those that are reported. All other bytes stay, unknown fields too. When `edit` resets
// `shares_in_file`, the files that say the shares go. nullopt: nothing changes, as where the reply
// has no resources, or is no protobuf.
std::optional<std::string> WithCpuNumbers(std::string_view response,
                                          const std::function<void(CpuNumbers&)>& edit);

}  // namespace resmgr
