// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/api/nri.pb.h"
#include "pkg/model/pod.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts pod sandboxes to NRI's messages. All strings are made UTF-8, since Go's protobuf refuses
// a message for one invalid byte (Utf8Repaired). `linux` is always present, since existing plugins
// read it without a check. Pure functions.

// The view from a request; the id of a new sandbox is empty.
api::PodSandbox ToPodSandbox(const Pod& pod);
// The view of an existing sandbox.
api::PodSandbox ToPodSandbox(const Pod& pod, const SandboxFacts& facts);
// Adds the runtime's own facts: pid, addresses, cgroup, namespaces. Fields that it does not report
// stay unchanged.
void AddFacts(const SandboxFacts& facts, api::PodSandbox& pod);

// Also used by the views of containers.
void CopyNamespaces(const std::vector<LinuxNamespace>& from,
                    google::protobuf::RepeatedPtrField<api::LinuxNamespace>& to);

}  // namespace resmgr::nri
