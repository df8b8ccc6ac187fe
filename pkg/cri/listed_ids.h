// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/backends.h"
#include "pkg/cri/id_owners.h"

namespace resmgr {

// Learns a runtime's ids from its reply of ListPodSandbox or ListContainers without a filter.
// Containers in a pod sandbox of another runtime are ignored. kInvalidArgument: malformed protobuf,
// and nothing is learned.
Status LearnList(IdOwners& owners, IdOwners::Kind kind, size_t backend, std::string_view list,
                 IdOwners::ListBegin begin);

// Such a reply, with or without a filter, without the entries whose id belongs to another runtime:
// clients use the id alone, and would stop or remove the container of the other runtime. nullopt:
// there is no such entry, or the reply is malformed.
std::optional<std::string> WithoutThoseOfOthers(const Backends& backends, IdOwners::Kind kind,
                                                size_t backend, std::string_view list);

}  // namespace resmgr
