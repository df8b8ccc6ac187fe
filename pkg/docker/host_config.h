// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"

namespace resmgr::docker {

// The fields of HostConfig (Docker API 1.41), which clients before version 1.18 of the API put
// beside it. Pure functions.

struct HostConfigNumber {
  Field field;
  std::string_view name;
};

// The names in HostConfig of the numbers in pkg/model/resource_fields.h, which have the same units.
inline constexpr std::array<HostConfigNumber, 6> kHostConfigNumbers{{
    {Field::kCpuShares, "CpuShares"},
    {Field::kCpuPeriod, "CpuPeriod"},
    {Field::kCpuQuota, "CpuQuota"},
    {Field::kMemoryLimit, "Memory"},
    {Field::kMemorySwapLimit, "MemorySwap"},
    {Field::kOomScoreAdj, "OomScoreAdj"},
}};

// Whether Go reads a member with this quoted name into one of these fields.
bool IsHostConfigField(std::string_view quoted);

// The members of a creation's body, beside HostConfig, that have names of its fields:
// `"name":value`, in their order. The body has passed CheckJson.
std::vector<std::string> MembersBesideHostConfig(std::string_view object);

// The lists in the HostConfig of a creation: Binds, Mounts, Devices, Ulimits and SecurityOpt, in
// the form of Docker API 1.41. Elements that an edit does not name stay as they were written.
// `object` is the body of the creation and has passed CheckJson. Pure functions.

// Names and values of members to be set in an object.
using NewMembers = std::vector<std::pair<std::string_view, std::string>>;

// The member `field` of the last HostConfig object that has one; "" if none has.
std::string_view HostConfigMember(std::string_view object, std::string_view field);

// The seccomp part of a security option: "unconfined", "builtin" (dockerd 23.0) or a profile as
// JSON (the client has read the file); nullopt for other options. The last option counts.
std::optional<std::string_view> SeccompOf(std::string_view option);

// Adds each list that the adjustment changes, with all of its elements. kInvalidArgument names a
// change that Docker cannot express.
Status AddLists(std::string_view object, const WideAdjustment& wide, NewMembers& members);

// Whether fields of HostConfig can express this file of cgroup v2: io.max or io.weight.
bool IsBlockioFile(std::string_view file);

// Adds BlkioWeight, BlkioWeightDevice and BlkioDevice{Read,Write}{Bps,IOps} with the meaning of the
// file. dockerd takes paths of devices, so the links that udev makes in /dev/block are used. If no
// device has a limit the lists are empty. InvalidArgument: a malformed value. Pure.
Status AddBlockio(std::string_view file, std::string_view value, NewMembers& members);

}  // namespace resmgr::docker
