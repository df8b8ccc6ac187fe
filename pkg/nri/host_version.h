// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::nri {

// A version of the NRI API, as a runtime or a plugin has it.
struct ApiVersion {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;

  friend auto operator<=>(const ApiVersion&, const ApiVersion&) = default;
};

// "v0.12.2", "0.8.0", "1.7.24+unknown", "2.1.4~ds1", "v2.3.0-rc.1": what follows the numbers does
// not count, and a missing number is 0. nullopt: it does not begin as a version does.
std::optional<ApiVersion> ParseVersion(std::string_view text);

// The API of a host. `nri_version` is what it says in its ConfigureRequest, which hosts do since
// 0.12; for others it follows from the versions of the API that the releases of containerd and
// CRI-O are built with. Unknown runtimes have the oldest, 0.6.1.
ApiVersion VersionOfHost(std::string_view nri_version, std::string_view runtime_name,
                         std::string_view runtime_version);

// FailedPrecondition tells why this plugin must not serve the runtime, and what to do: CRI-O 1.26.0
// and 1.26.1 end when no plugin changes anything of an update, as when the update is ours.
Status CheckRuntime(std::string_view name, std::string_view version);

// The bits of the events that this plugin subscribes to: those that the host knows, since a host
// before 0.10 refuses a plugin that asks for others, but never ValidateContainerAdjustment. A host
// refuses the first creation after the end of a plugin that has subscribed to that. Bit (event - 1)
// stands for an event.
uint32_t EventsOfHost(ApiVersion version);

}  // namespace resmgr::nri
