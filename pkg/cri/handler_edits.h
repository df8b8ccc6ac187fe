// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/method_table.h"

namespace resmgr {

// Which messages of runtime.v1 and runtime.v1alpha2 name RuntimeClass handlers, and what they are
// with those of the other side. Every other byte stays; nullopt: all of them. Pure functions.

// What a call has to do with handlers.
enum class HandlerUse : uint8_t {
  kNone,
  kNewSandbox,      // RunPodSandboxRequest.runtime_handler
  kNewContainer,    // CreateContainerRequest: ImageSpec.runtime_handler of the image and of mounts
  kImage,           // PullImage, ImageStatus, RemoveImage: ImageSpec.runtime_handler
  kImageFilter,     // ListImages, StreamImages: the same in ImageFilter
  kRemovedSandbox,  // RemovePodSandbox: none, but the sandbox is one of an alias no more
  kSandboxStatus,   // PodSandboxStatus.runtime_handler of the reply, and in its verbose info
  kSandboxList,     // PodSandbox.runtime_handler of the reply of ListPodSandbox
  kSandboxStream,   // the same of StreamPodSandboxes
  kEvents,          // ContainerEventResponse.pod_sandbox_status of GetContainerEvents
  kHandlers,        // StatusResponse.runtime_handlers
};
HandlerUse HandlerUseOf(const Method& method);

// A request with the runtime's handlers in place of aliases.
std::optional<std::string> WithRuntimesHandlers(HandlerUse use, std::string_view request,
                                                const HandlerAliases& aliases);

// A message of a reply with the aliases that clients named. Verbose info is edited where it is as
// containerd writes it: a member `runtimeHandler` in the JSON text of `info`.
std::optional<std::string> WithAliases(HandlerUse use, std::string_view reply,
                                       const HandlerAliases& aliases);

}  // namespace resmgr
