// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/protocol.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "pkg/base/parse.h"
#include "pkg/config/nri_config.h"

namespace resmgr::nri {
namespace {

constexpr ApiVersion kOldest{0, 6, 1};
// CRI-O 1.33 has a version between 0.9 and 0.10, with UpdatePodSandbox and PostUpdatePodSandbox,
// but without validation.
constexpr ApiVersion kWithPodUpdates{0, 9, 1};

constexpr uint32_t kEvents = 0x7ff;
constexpr uint32_t kEventsWithPodUpdates = 0x1fff;

// The first release of a runtime with this version of the API.
struct ReleasedApi {
  ApiVersion runtime;
  ApiVersion api;
};

// Each list begins with the newest release.
constexpr std::array kContainerd{
    ReleasedApi{{2, 3, 0}, {0, 12, 0}},  //
    ReleasedApi{{2, 2, 1}, {0, 11, 0}},  //
    ReleasedApi{{2, 2, 0}, {0, 10, 0}},  //
    ReleasedApi{{2, 0, 0}, {0, 8, 0}},   //
    ReleasedApi{{1, 7, 26}, {0, 8, 0}},  //
};
constexpr std::array kCrio{
    ReleasedApi{{1, 37, 0}, {0, 12, 0}},  //
    ReleasedApi{{1, 35, 0}, {0, 11, 0}},  //
    ReleasedApi{{1, 34, 0}, {0, 10, 0}},  //
    ReleasedApi{{1, 33, 0}, {0, 9, 1}},   //
    ReleasedApi{{1, 32, 0}, {0, 9, 0}},   //
};

constexpr std::array<const char*, 14> kMethods{
    "RunPodSandbox",        "StopPodSandbox",
    "RemovePodSandbox",     "CreateContainer",
    "PostCreateContainer",  "StartContainer",
    "PostStartContainer",   "UpdateContainer",
    "PostUpdateContainer",  "StopContainer",
    "RemoveContainer",      "UpdatePodSandbox",
    "PostUpdatePodSandbox", "ValidateContainerAdjustment"};

ApiVersion VersionOf(std::span<const ReleasedApi> releases, ApiVersion runtime) {
  const auto found =
      std::find_if(releases.begin(), releases.end(),
                   [&](const ReleasedApi& release) { return runtime >= release.runtime; });
  return found == releases.end() ? kOldest : found->api;
}

}  // namespace

Status CheckPluginName(std::string_view index, std::string_view name) {
  if (!IsNriPluginName(name)) {
    return InvalidArgument("NRI plugin name \"{}\" is not of 1 to {} letters, digits and _.+-",
                           Printable(name), kLongestNriPluginName);
  }
  if (!IsNriPluginIndex(index)) {
    return InvalidArgument("NRI plugin index \"{}\" is not two digits", Printable(index));
  }
  return OkStatus();
}

std::string FullPluginName(std::string_view index, std::string_view name) {
  return std::string(index).append("-").append(name);
}

std::optional<ApiVersion> ParseVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  ApiVersion version;
  for (uint32_t* const part : {&version.major, &version.minor, &version.patch}) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = ParseUint(text.substr(0, digits));
    if (!number || *number > UINT32_MAX) return std::nullopt;
    *part = static_cast<uint32_t>(*number);
    text.remove_prefix(digits);
    if (text.size() < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9') break;
    text.remove_prefix(1);
  }
  return version;
}

ApiVersion VersionOfHost(std::string_view nri_version, std::string_view runtime_name,
                         std::string_view runtime_version) {
  if (const auto told = ParseVersion(nri_version)) return *told;
  const auto runtime = ParseVersion(runtime_version);
  if (!runtime) return kOldest;
  if (EqualsIgnoreCase(runtime_name, "containerd")) return VersionOf(kContainerd, *runtime);
  if (EqualsIgnoreCase(runtime_name, "cri-o")) return VersionOf(kCrio, *runtime);
  return kOldest;
}

Status CheckRuntime(std::string_view name, std::string_view version) {
  constexpr ApiVersion kFirstWithNri{1, 26, 0};
  constexpr ApiVersion kMended{1, 26, 2};
  const auto runtime = ParseVersion(version);
  if (!EqualsIgnoreCase(name, "cri-o") || !runtime) return OkStatus();
  if (*runtime < kFirstWithNri || *runtime >= kMended) return OkStatus();
  return FailedPrecondition(
      "CRI-O {}.{}.{} ends when a container is updated, so this plugin does not serve it: update "
      "CRI-O to 1.26.2 or newer, or use the relay",
      runtime->major, runtime->minor, runtime->patch);
}

uint32_t EventsOfHost(ApiVersion version) {
  return version >= kWithPodUpdates ? kEventsWithPodUpdates : kEvents;
}

uint32_t SubscribedTo(int32_t events) {
  if (events == 0) return kAllEvents & ~BitOf(api::EVENT_VALIDATE_CONTAINER_ADJUSTMENT);
  return static_cast<uint32_t>(events) & kAllEvents;
}

const char* MethodOf(api::Event event) {
  if (event <= 0 || static_cast<size_t>(event) > kMethods.size()) return "";
  return kMethods.at(static_cast<size_t>(event) - 1);
}

std::vector<std::string> EventNames(uint32_t bits) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if ((bits >> i & 1) != 0) names.emplace_back(kMethods.at(i));
  }
  return names;
}

api::StateChangeEvent StateChangeOf(api::Event kind, api::PostCreateContainerRequest own) {
  api::StateChangeEvent event;
  event.set_event(kind);
  event.mutable_pod()->Swap(own.mutable_pod());
  if (own.has_container()) event.mutable_container()->Swap(own.mutable_container());
  return event;
}

}  // namespace resmgr::nri
