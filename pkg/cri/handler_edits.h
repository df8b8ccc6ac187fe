// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/method_table.h"

namespace resmgr {

// Finds RuntimeClass handlers in messages of runtime.v1 and runtime.v1alpha2, and replaces them by
// those of the other side. All other bytes stay; nullopt: no change. Pure functions.

// The role of handlers in a call.
enum class HandlerUse : uint8_t {
  kNone,
  kNewSandbox,      // RunPodSandboxRequest.runtime_handler
  kNewContainer,    // CreateContainerRequest: ImageSpec.runtime_handler of the image and of mounts
  kImage,           // PullImage, ImageStatus, RemoveImage: ImageSpec.runtime_handler
  kImageFilter,     // ListImages, StreamImages: the same in ImageFilter
  kRemovedSandbox,  // RemovePodSandbox names no handler; its sandbox's alias is forgotten
  kSandboxStatus,   // PodSandboxStatus.runtime_handler in the reply, and in its verbose info
  kSandboxList,     // PodSandbox.runtime_handler in the reply of ListPodSandbox
  kSandboxStream,   // the same in StreamPodSandboxes
  kEvents,          // ContainerEventResponse.pod_sandbox_status in GetContainerEvents
  kHandlers,        // StatusResponse.runtime_handlers
};
HandlerUse HandlerUseOf(const Method& method);

// A request with aliases replaced by the runtime's handlers.
std::optional<std::string> WithRuntimesHandlers(HandlerUse use, std::string_view request,
                                                const HandlerAliases& aliases);

// A message of a reply with the aliases that clients named. Verbose info is edited in containerd's
// form: a member `runtimeHandler` in the JSON text of `info`.
std::optional<std::string> WithAliases(HandlerUse use, std::string_view reply,
                                       const HandlerAliases& aliases);

}  // namespace resmgr
