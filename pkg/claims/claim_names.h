// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace resmgr {

// How a container shows which claim it uses: by a CDI device in its request, "KIND=claim-UID", for
// which the runtime sets the variable "DRA_CPUSET_UID=LIST". dra-driver-cpu has another kind but
// the same variable, so programs in containers that read the variable work unchanged.
inline constexpr std::string_view kClaimKind = "cri-resmgr.intel.com/cpu";
inline constexpr std::string_view kCompatibleClaimKind = "dra.k8s.io/cpu";

// Whether the text can be a claim's UID: it becomes a part of names, so it may have letters, digits
// and "-" only, 64 at most.
bool IsClaimUid(std::string_view text);

// "claim-UID", the device of a claim within its kind.
std::string ClaimDeviceName(std::string_view uid);
// "KIND=claim-UID".
std::string ClaimDevice(std::string_view kind, std::string_view uid);
// "DRA_CPUSET_UID".
std::string ClaimVariable(std::string_view uid);

// The UID in the name of a CDI device of either kind; nullopt for other devices.
std::optional<std::string_view> UidOfClaimDevice(std::string_view device);
// The UID in the name of a variable, without its value; nullopt for other variables.
std::optional<std::string_view> UidOfClaimVariable(std::string_view name);

}  // namespace resmgr
