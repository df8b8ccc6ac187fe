// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// Whether the bytes end within a field, so that no runtime can read them.
bool IsCutShort(std::string_view message);

// Reads the parts of messages that the resource manager needs directly from their bytes: the rest
// is not parsed. Field numbers are those of runtime.v1, which runtime.v1alpha2 shares. Every
// function here returns kInvalidArgument if the message is malformed.

// The messages within a CreateContainerRequest: views into it, or into `merged`.
struct CreateParts {
  std::string_view config;          // ContainerConfig
  std::string_view sandbox_config;  // PodSandboxConfig
  std::vector<std::string> files;   // see Request::files
  // Messages that occur several times: what they mean together is the concatenation of their bytes.
  struct Merged {
    std::string config;
    std::string sandbox_config;
  };
  std::unique_ptr<Merged> merged;
};
// Fills in the request, except `pod` and `hints`.
Status DecodeCreateContainer(std::string_view message, CreateRequest& request, CreateParts& parts);

// Reads a PodSandboxConfig as a pod: QoS class from the cgroup parent, no id. Missing metadata come
// from labels (pkg/model/pod.h).
StatusOr<Pod> DecodeSandboxConfig(std::string_view message);

// Reads a RunPodSandboxRequest as a pod, without id.
StatusOr<Pod> DecodeRunPodSandbox(std::string_view message);
// Reads the attempt of the pod sandbox from a RunPodSandboxRequest; 0 if it is absent or malformed.
uint32_t DecodeSandboxAttempt(std::string_view message);

struct UpdateMessage {
  ContainerId id;
  ContainerUpdate update;
  std::vector<std::string> files{};  // see Request::files
};
StatusOr<UpdateMessage> DecodeUpdateContainerResources(std::string_view message);

// The values of UpdatePodSandboxResourcesRequest for the pod as a whole.
struct UpdatePodMessage {
  PodSandboxId id;
  PodUpdate update;
};
StatusOr<UpdatePodMessage> DecodeUpdatePodSandboxResources(std::string_view message);

// Reads field 1 as a string: the id in the requests StartContainer, StopContainer, RemoveContainer,
// StopPodSandbox, RemovePodSandbox, and in the replies of RunPodSandbox and CreateContainer. A view
// into the message.
StatusOr<std::string_view> DecodeId(std::string_view message);

// Reads a ContainerEventResponse.
StatusOr<ContainerEvent> DecodeContainerEvent(std::string_view message);

// The container's id from a ContainerStatus reply if it has exited, else "". A view into the
// message.
StatusOr<std::string_view> DecodeExited(std::string_view message);

// Appends bytes to `out` that, appended to a message, change exactly the fields of the adjustment:
// in protobuf a later value of a field wins and embedded messages merge, so the earlier bytes stay
// unchanged. Empty for an empty adjustment.
void AppendCreateAdjustment(const ResourceValues& adjustment, std::string& out);
void AppendUpdateAdjustment(const ResourceValues& adjustment, std::string& out);

// A whole UpdateContainerResourcesRequest.
std::string EncodeUpdateRequest(const ContainerId& id, const ResourceValues& adjustment);

}  // namespace resmgr
