// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// The two connections of the trunk between a plugin and its host (containerd/nri, pkg/net/multiplex
// and pkg/api).
inline constexpr uint32_t kPluginConnection = 1;   // the plugin serves
inline constexpr uint32_t kRuntimeConnection = 2;  // the host serves
inline constexpr const char* kPluginService = "nri.pkg.api.v1alpha1.Plugin";
inline constexpr const char* kRuntimeService = "nri.pkg.api.v1alpha1.Runtime";
// The NRI version of this plugin and host; sent since 0.12.
inline constexpr const char* kOurVersion = "v0.12.2";

// Checks a plugin's name (NRI 0.12: letters, digits and _.+-) and index (two digits).
// kInvalidArgument tells which of the two is wrong.
Status CheckPluginName(std::string_view index, std::string_view name);

// "10-logger", the name in logs and commands, and the order of plugins.
std::string FullPluginName(std::string_view index, std::string_view name);

// A version of the NRI API of a runtime or a plugin.
struct ApiVersion {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;

  friend auto operator<=>(const ApiVersion&, const ApiVersion&) = default;
};

// The first version with LinuxRdt in adjustments.
inline constexpr ApiVersion kNamesRdtGroups{0, 11, 0};

// Parses "v0.12.2", "0.8.0", "1.7.24+unknown", "2.1.4~ds1", "v2.3.0-rc.1": text after the numbers
// is ignored, and a missing number is 0. nullopt: the text does not begin like a version.
std::optional<ApiVersion> ParseVersion(std::string_view text);

// The API version of a host. `nri_version` is the one in its ConfigureRequest, which hosts send
// since 0.12; for others it follows from the releases of containerd and CRI-O. Unknown runtimes get
// the oldest, 0.6.1.
ApiVersion VersionOfHost(std::string_view nri_version, std::string_view runtime_name,
                         std::string_view runtime_version);

// kFailedPrecondition tells why this plugin must not serve the runtime, and how to remedy that:
// CRI-O 1.26.0 and 1.26.1 crash at an update that no plugin changes, and an update of ours would be
// one.
Status CheckRuntime(std::string_view name, std::string_view version);

// The bits of the events that this plugin subscribes to; bit (event - 1) stands for an event. These
// are all events that the host knows, since a host before 0.10 refuses unknown ones, except
// ValidateContainerAdjustment: if a plugin with this subscription ends, a host refuses the next
// creation.
uint32_t EventsOfHost(ApiVersion version);

// The bits of the events that plugins may subscribe to (NRI 0.10: bit `event - 1`).
inline constexpr uint32_t kAllEvents = 0x3fff;
constexpr uint32_t BitOf(api::Event event) {
  return event <= 0 || event > 31 ? 0 : uint32_t{1} << (event - 1);
}
// The events of a plugin by its ConfigureResponse. 0 stands for all but validation: creations are
// blocked while a plugin that asked for validation is absent.
uint32_t SubscribedTo(int32_t events);
// The names of the events, such as "RunPodSandbox", in the order of the bits.
std::vector<std::string> EventNames(uint32_t bits);
// The method's name, "CreateContainer"; "" for an event without one.
const char* MethodOf(api::Event event);

// The events that were sent by StateChange before NRI 0.12 and have had methods of their own since.
inline constexpr std::array kStateChanges{
    api::EVENT_RUN_POD_SANDBOX,       api::EVENT_POST_UPDATE_POD_SANDBOX,
    api::EVENT_STOP_POD_SANDBOX,      api::EVENT_REMOVE_POD_SANDBOX,
    api::EVENT_POST_CREATE_CONTAINER, api::EVENT_START_CONTAINER,
    api::EVENT_POST_START_CONTAINER,  api::EVENT_POST_UPDATE_CONTAINER,
    api::EVENT_REMOVE_CONTAINER};
// The event by the request of its own method. All of these requests have the pod as field 1, and
// those of containers the container as field 2.
api::StateChangeEvent StateChangeOf(api::Event kind, api::PostCreateContainerRequest own);

}  // namespace resmgr::nri
