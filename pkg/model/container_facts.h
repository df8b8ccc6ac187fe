// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Facts that are shown of a container and do not influence its placement; computed when asked
// for.

// Resources other than cpu and memory by their Kubernetes names: huge pages ("hugepages-2Mi") in
// bytes, extended resources ("example.com/device") in pieces. The annotation of the webhook wins
// where it names the container; else the huge pages that the request limits it to. An annotation
// that cannot be read counts as none.
std::map<std::string, int64_t> OtherResources(const Pod& pod, const Container& container);

// CRI messages do not tell them apart, the annotation of the webhook does.
enum class ContainerRole {
  kUnknown,  // no annotation names it; ephemeral containers have no resources and are never named
  kRegular,
  kInit,
  kSidecar,  // an init container that runs beside the regular ones
};
std::string_view ToString(ContainerRole role);  // "init", ...; "" when not known
ContainerRole RoleOf(const Snapshot& snapshot, const Pod& pod, const Container& container);

}  // namespace resmgr
