// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/api/nri.pb.h"
#include "pkg/base/field_writer.h"
#include "pkg/model/container_details.h"
#include "pkg/model/create_request.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts containers to NRI's messages. All strings are made UTF-8, and `linux`, its `resources`
// with `cpu` and `memory`, and `hooks` are always present (pod_view.h). Pure functions.

// A container that is to be created. Its id is empty and its state UNKNOWN, as in containerd.
// `details` has all parts that kAllDetails names; both include earlier stages' changes
// (pkg/model/overlay.h). `image`: nullptr if unknown: then arguments that only the image has are
// empty, and so is its part of the environment. Devices have only their paths: their numbers are in
// the file system, which must not be read on the loop. Mounts are the request's; the runtime adds
// more.
api::Container ToContainer(const CreateRequest& create, const ContainerDetails& details,
                           const ImageFacts* image, const api::PodSandbox& pod);

// The same with an id, as encoded fields of an api::Container, since building a message with
// hundreds of variables is slow.
void EncodeContainer(const CreateRequest& create, const ContainerDetails& details,
                     const ImageFacts* image, const api::PodSandbox& pod, std::string_view id,
                     FieldWriter& container);

// A container that exists, under the runtime's id.
api::Container ToContainer(const ContainerFacts& facts);

// Adds the runtime's own facts: state, pid, times, exit, cgroup, namespaces, and, if it reports the
// OCI specification, all mounts, hooks and limits in force. Fields that it does not report stay
// unchanged, as do id, names and resources.
void AddFacts(const ContainerFacts& facts, api::Container& container);

}  // namespace resmgr::nri
