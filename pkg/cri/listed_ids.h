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

// Learns what a runtime has from the reply of ListPodSandbox or ListContainers without a filter.
// Containers in a pod sandbox of another runtime are not taken. InvalidArgument: it is no protobuf,
// and nothing is learned.
Status LearnList(IdOwners& owners, IdOwners::Kind kind, size_t backend, std::string_view list,
                 IdOwners::ListBegin begin);

// Such a reply, with a filter or without, less what has an id that another runtime has: clients
// name things by ids alone, and would stop and remove the other runtime's. nullopt: there is none,
// or it is no protobuf.
std::optional<std::string> WithoutThoseOfOthers(const Backends& backends, IdOwners::Kind kind,
                                                size_t backend, std::string_view list);

}  // namespace resmgr
