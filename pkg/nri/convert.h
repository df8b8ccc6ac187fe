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
#include "pkg/nri/host_version.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts between NRI's messages and model values. In NRI a set value has a message of its own,
// which may hold 0; in the CRI, 0 means unset. Zeros of a runtime, which copies a CRI request,
// therefore stay unset here.

LinuxResources ToResources(const api::LinuxResources& resources);
// See Request::files.
std::vector<std::string> FilesOf(const api::LinuxResources& resources);

// Takes the QoS class from the cgroup parent; missing fields from labels.
Pod ToPod(const api::PodSandbox& pod);

// Converts an existing container. UNKNOWN counts as created: containerd uses it while it creates
// one.
RuntimeContainer ToRuntimeContainer(const api::Container& container);

// The request of a container that is to be created; without hints.
CreateRequest ToCreateRequest(const api::Container& container);

// Adds the hook at its hook point.
void AddHook(const OciHook& hook, api::Hooks& hooks);

// Adds the resource manager's decision as a change of a container.
void AddTo(const ResourceValues& values, api::LinuxResources& resources);

// Whether the answer to an event has a place for the field. NRI cannot change labels and the cgroup
// parent of a pod; devices need numbers that only the runtime's /dev knows; seccomp filters are
// given as objects, not as files.
bool NriHas(Operation operation, Field field);

// Adds all changes that stages make at a creation, for a host with this version. A class of RDT is
// the name of a group of resctrl; hosts before kNamesRdtGroups look it up in the runtime's own
// configuration.
void AddTo(const Adjustment& adjustment, ApiVersion host, api::ContainerAdjustment& out);

}  // namespace resmgr::nri
