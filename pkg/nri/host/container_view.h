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

// Containers as NRI plugins see them. Texts are UTF-8 whatever the CRI's are, and `linux`, its
// `resources` with `cpu` and `memory`, and `hooks` are always there (pod_view.h). Pure functions.

// A container that is to be created. Its id is empty and its state UNKNOWN, as in containerd.
// `details` has all parts that kAllDetails names; what earlier stages changed is in both
// (pkg/model/overlay.h). `image`: nullptr where it is not known: then arguments that only the image
// says are empty, and so is its part of the environment. Of devices only the path is told: their
// numbers are in the file system, where nothing on the loop looks. Mounts are those of the request:
// the runtime adds more.
api::Container ToContainer(const CreateRequest& create, const ContainerDetails& details,
                           const ImageFacts* image, const api::PodSandbox& pod);

// The same with an id, as encoded fields of an api::Container. An environment of hundreds of
// variables is not made as a message for that.
void EncodeContainer(const CreateRequest& create, const ContainerDetails& details,
                     const ImageFacts* image, const api::PodSandbox& pod, std::string_view id,
                     FieldWriter& container);

// A container that exists, under the runtime's id.
api::Container ToContainer(const ContainerFacts& facts);

// Adds what only the runtime knows: state, pid, times, how it ended, cgroup, namespaces, and, where
// it tells the OCI specification, all mounts, hooks and limits that are in force. What it does not
// tell stays as it was, and so do id, names and resources.
void AddFacts(const ContainerFacts& facts, api::Container& container);

}  // namespace resmgr::nri
