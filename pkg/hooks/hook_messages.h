// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/ids.h"
#include "pkg/model/container_details.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/model/resources.h"

namespace resmgr::hooks {

namespace api = ::runtime::v1alpha1;

using HookMap = google::protobuf::Map<std::string, std::string>;
bool HasEntry(const HookMap& map, const std::string& key, const std::string& value);

// Builds the requests to hook servers. Protobuf strings must be UTF-8: each invalid byte is
// replaced by U+FFFD. Pure functions.

// Unset values become 0 or empty, as in the CRI.
api::LinuxContainerResources ToHookResources(const LinuxResources& resources);
// The reverse: 0 and empty become unset.
LinuxResources FromHookResources(const api::LinuxContainerResources& message);

// The request of hooks about a pod sandbox. `attempt` is that of its metadata.
api::PodSandboxHookRequest ToPodRequest(const Pod& pod, uint32_t attempt);

// A container's variables, kept beside its message: there are dozens, which hardly ever change.
// nullptr: the message has all variables. Text is UTF-8.
using HookEnvironment = std::shared_ptr<const Environment>;
HookEnvironment ToHookEnvironment(Environment environment);

// Parts of an encoded ContainerResourceHookRequest, which is a concatenation of the pod's part, the
// variables and the rest. `resources`: include the pod's resources.
std::string EncodedPodPart(const api::PodSandboxHookRequest& pod, bool resources);
void AppendEnvironment(const HookEnvironment& environment, std::string& encoded);

// The request of PreCreateContainer without the pod's part: the container has no id yet. If several
// environment variables have one name, the server gets the last one.
api::ContainerResourceHookRequest ToCreateRequest(const CreateRequest& create,
                                                  const ContainerDetails& details);

// Completes the request of PreUpdateContainerResources. `held` is the container's stored request,
// which gets the values of the update; `details` has the memory and swap limit and `unified`.
void SetUpdate(const LinuxResources& update, const StringMap& annotations,
               const ContainerDetails& details, api::ContainerResourceHookRequest& held);

// Takes over from an update that the runtime has carried out: sets what differs between the request
// before and after it, in resources and annotations. All else in `held` stays, since other updates
// may have changed it meanwhile.
void TakeUpdate(const api::ContainerResourceHookRequest& before,
                const api::ContainerResourceHookRequest& after,
                api::ContainerResourceHookRequest& held);

// Views of the variables in a request to a server.
using SentVariables = absl::flat_hash_map<std::string_view, std::string_view>;

// The encoded answer to a container's hook without its variables if these repeat exactly the sent
// ones; an answer without variables means no change, too. Most servers repeat dozens of variables:
// comparing views, and storing the pod's part beside the message, bring a creation and its removal
// from 131 to 143 us of CPU down to 108 to 116 (hooks-bench). nullopt: the variables differ, or the
// answer is malformed.
std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer, SentVariables sent);

}  // namespace resmgr::hooks
