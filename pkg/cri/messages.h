// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/create_request.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/model/resource_values.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// Whether the bytes end in the midst of a field, so that no runtime can read them.
bool IsCutShort(std::string_view message);

// What the resource manager needs from messages, read straight from their bytes: the rest is not
// parsed, not even looked at. Field numbers are those of runtime.v1, which runtime.v1alpha2 shares.
// Every function here fails with InvalidArgument when the bytes are no such message.

// The messages that a CreateContainerRequest consists of: views into it.
struct CreateParts {
  std::string_view config;          // ContainerConfig
  std::string_view sandbox_config;  // PodSandboxConfig
  std::vector<std::string> files;   // as Request::files
};
// Fills in the request, but for `pod` and `hints`.
Status DecodeCreateContainer(std::string_view message, CreateRequest& request, CreateParts& parts);

// A PodSandboxConfig as a pod: QoS class from the cgroup parent, no id. What its metadata leave out
// comes from labels (pkg/model/identity.h).
StatusOr<Pod> DecodeSandboxConfig(std::string_view message);

// Fills pod.qos, from pod.cgroup_parent or, where that is no pod's, from the webhook's annotation;
// without either it is to be derived from what the containers ask for.
void SetQos(Pod& pod);

// A RunPodSandboxRequest as a pod, without id.
StatusOr<Pod> DecodeRunPodSandbox(std::string_view message);
// The attempt of the same message's pod sandbox; 0 where it does not say, or cannot be read.
uint32_t DecodeSandboxAttempt(std::string_view message);

struct UpdateMessage {
  ContainerId id;
  ContainerUpdate update;
  std::vector<std::string> files{};  // as Request::files
};
StatusOr<UpdateMessage> DecodeUpdateContainerResources(std::string_view message);

// UpdatePodSandboxResourcesRequest: what it sets of the pod as a whole.
struct UpdatePodMessage {
  PodSandboxId id;
  PodUpdate update;
};
StatusOr<UpdatePodMessage> DecodeUpdatePodSandboxResources(std::string_view message);

// Field 1 as a string: the id in the requests StartContainer, StopContainer, RemoveContainer,
// StopPodSandbox, RemovePodSandbox, and in the replies of RunPodSandbox and CreateContainer. A view
// into the message.
StatusOr<std::string_view> DecodeId(std::string_view message);

// A ContainerEventResponse.
StatusOr<ContainerEvent> DecodeContainerEvent(std::string_view message);

// From a ContainerStatus reply: the container's id when it says that it has exited, else "". A view
// into the message.
StatusOr<std::string_view> DecodeExited(std::string_view message);

// Appends bytes that, appended to the message, change just the fields of the adjustment: in
// protobuf a later value of a field wins and embedded messages merge, so all that stands before
// stays as it was. Nothing for an empty adjustment.
void AppendCreateAdjustment(const ResourceValues& adjustment, std::string& out);
void AppendUpdateAdjustment(const ResourceValues& adjustment, std::string& out);

// The bytes of the first for one container after the other. Most are placed as the one before them
// was, on the same shared CPUs: the bytes are the same then.
class CreationSuffix {
 public:
  // Valid until the next call.
  std::string_view For(const ResourceValues& adjustment);

 private:
  ResourceValues adjustment_;
  std::string bytes_;  // for that one
};

// A whole UpdateContainerResourcesRequest.
std::string EncodeUpdateRequest(const ContainerId& id, const ResourceValues& adjustment);

}  // namespace resmgr
