// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/create_request.h"
#include "pkg/model/operation.h"
#include "pkg/model/pod.h"
#include "pkg/model/resource_values.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Between NRI's messages and our values. In NRI a value that is set has a message of its own, which
// may hold 0; in the CRI, 0 is not set. So zeros of a runtime, which copies a CRI request, are not
// set here either.

LinuxResources ToResources(const api::LinuxResources& resources);
// As Request::files.
std::vector<std::string> FilesOf(const api::LinuxResources& resources);

// QoS class from the cgroup parent; what is left out, from labels.
Pod ToPod(const api::PodSandbox& pod);

// Of a container that exists. UNKNOWN counts as created: so containerd has one that is being made.
RuntimeContainer ToRuntimeContainer(const api::Container& container);

// What a container that is to be created asks for; without hints.
CreateRequest ToCreateRequest(const api::Container& container);

// At the point that it is for.
void AddHook(const OciHook& hook, api::Hooks& hooks);

// What the resource manager decides, as a change of a container.
void AddTo(const ResourceValues& values, api::LinuxResources& resources);

// Whether the answer to an event has a place for the field. NRI cannot change labels and the cgroup
// parent of a pod, devices need numbers that only the runtime's /dev tells, and seccomp filters are
// given as such and not by a file.
bool NriHas(Operation operation, Field field);

// All that stages change of a container that is created.
void AddTo(const Adjustment& adjustment, api::ContainerAdjustment& out);

}  // namespace resmgr::nri
