// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <google/protobuf/map.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/string_map.h"
#include "pkg/model/resources.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts resources to NRI's message. In NRI a set value has a message of its own, which may hold
// 0; in the CRI, 0 means unset. Strings are made UTF-8 (Utf8Repaired). Pure functions.

using NriStrings = google::protobuf::Map<std::string, std::string>;
void CopyStrings(const StringMap& from, NriStrings& to);

// `cpu` and `memory` are always present, since existing plugins read them without a check.
api::LinuxResources ToNriResources(const LinuxResources& resources,
                                   const std::optional<int64_t>& memory_swap_limit = {},
                                   const StringMap& unified = {});

}  // namespace resmgr::nri
