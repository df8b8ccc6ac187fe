// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pkg/api/nri.pb.h"
#include "pkg/base/string_map.h"
#include "pkg/base/wire.h"
#include "pkg/model/container_details.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/model/resources.h"
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

// Converts resources to NRI's message. In NRI a set value has a message of its own, which may hold
// 0; in the CRI, 0 means unset. Strings are made UTF-8 (Utf8Repaired). Pure function. `cpu` and
// `memory` are always present, since existing plugins read them without a check.
api::LinuxResources ToNriResources(const LinuxResources& resources,
                                   const std::optional<int64_t>& memory_swap_limit = {},
                                   const StringMap& unified = {});

// Converts containers to NRI's messages. All strings are made UTF-8, and `linux`, its `resources`
// with `cpu` and `memory`, and `hooks` are always present. Pure functions.

// A container that is to be created. Its id is empty and its state UNKNOWN, as in containerd.
// `details` has all parts that kAllDetails names; `create` and `details` include earlier stages'
// changes (pkg/model/adjustment.h). `image` is nullptr if unknown: the result then lacks the
// arguments and environment variables that only the image has. Devices have only their paths: their
// numbers are in the file system, which must not be read on the loop. Mounts are the request's; the
// runtime adds more.
api::Container ToContainer(const CreateRequest& create, const ContainerDetails& details,
                           const ImageFacts* image, const api::PodSandbox& pod);

// ToContainer with an id, but returns encoded fields of an api::Container, since building a message
// with hundreds of variables is slow.
void EncodeContainer(const CreateRequest& create, const ContainerDetails& details,
                     const ImageFacts* image, const api::PodSandbox& pod, std::string_view id,
                     FieldWriter& container);

// A container that exists, under the runtime's id.
api::Container ToContainer(const ContainerFacts& facts);

// Adds the runtime's own facts: state, pid, times, exit, cgroup, namespaces, and, if it reports the
// OCI specification, all mounts, hooks and limits in force. Fields that it does not report stay
// unchanged, as do id, names and resources.
void AddFacts(const ContainerFacts& facts, api::Container& container);

// Adds "NAME=value" as encoded fields of an api::Container, without a string for each. False, with
// nothing added, if a variable is repeated or is not ASCII.
bool AppendPlainEnvironment(const Environment& image, const Environment& own,
                            FieldWriter& container);

void AddSeccomp(const ContainerSecurity& security, api::LinuxContainer& linux);

}  // namespace resmgr::nri
