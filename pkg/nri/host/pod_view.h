// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/map.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/string_map.h"
#include "pkg/model/pod.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Pod sandboxes as NRI plugins see them. Texts are UTF-8 whatever the CRI's are: Go's protobuf
// refuses a message for one byte that is none (Utf8Repaired). `linux` is always there, since
// plugins of the field read it without asking. Pure functions.

// What the request says; of sandboxes that are being made the id is empty.
api::PodSandbox ToPodSandbox(const Pod& pod);
// The same of one that exists.
api::PodSandbox ToPodSandbox(const Pod& pod, const SandboxFacts& facts);
// Adds what only the runtime knows: pid, addresses, cgroup, namespaces. What it does not tell stays
// as it was.
void AddFacts(const SandboxFacts& facts, api::PodSandbox& pod);

// For the views of containers, too.
using NriStrings = google::protobuf::Map<std::string, std::string>;
void CopyStrings(const StringMap& from, NriStrings& to);
void CopyNamespaces(const std::vector<LinuxNamespace>& from,
                    google::protobuf::RepeatedPtrField<api::LinuxNamespace>& to);

}  // namespace resmgr::nri
