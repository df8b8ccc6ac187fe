// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/ids.h"
#include "pkg/model/container_details.h"
#include "pkg/model/create_request.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr::hooks {

namespace api = ::runtime::v1alpha1;

// What hook servers are asked. Protobuf has no place for text that is no UTF-8: servers get the
// replacement character (U+FFFD) for each byte that is none. Pure functions.

// What is not set is 0 or empty, as the CRI has it.
api::LinuxContainerResources ToHookResources(const LinuxResources& resources);
// The other way: 0 and empty are not set.
LinuxResources FromHookResources(const api::LinuxContainerResources& message);

// Of hooks about a pod sandbox. `attempt` is that of its metadata.
api::PodSandboxHookRequest ToPodRequest(const Pod& pod, uint32_t attempt);

// A container's variables beside its request: dozens of them, which hardly ever change. nullptr:
// the request has all that there are. Text is UTF-8.
using HookEnvironment = std::shared_ptr<const Environment>;
HookEnvironment ToHookEnvironment(Environment environment);

// Parts of an encoded ContainerResourceHookRequest, which is these parts and the rest behind each
// other: what is the pod's, and variables. `resources`: also those of the pod.
std::string EncodedPodPart(const api::PodSandboxHookRequest& pod, bool resources);
void AppendEnvironment(const HookEnvironment& environment, std::string& encoded);

// Of PreCreateContainer: the container has no id yet. Of several environment variables with one
// name the server gets the last one. The cgroup parent is the pod's, else that in `details`.
api::ContainerResourceHookRequest ToCreateRequest(const Pod& pod, uint32_t pod_attempt,
                                                  const CreateRequest& create,
                                                  ContainerDetails details);

// Of PreUpdateContainerResources: what the container has, `held`, with what the update sets. Of
// `details`, the memory and swap limit and `unified`.
void SetUpdate(const LinuxResources& update, const StringMap& annotations,
               const ContainerDetails& details, api::ContainerResourceHookRequest& held);

}  // namespace resmgr::hooks
