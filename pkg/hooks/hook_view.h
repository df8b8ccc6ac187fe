// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/ids.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/model/resources.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/runtime/typed_view.h"

namespace resmgr::hooks {

namespace api = ::runtime::v1alpha1;

// The data about a pod sandbox that hook servers get.
struct HookPod {
  PodSandboxId id{};
  api::PodSandboxHookRequest request;
  bool stop_told = false;  // servers were called because it was stopped
};

// The data about a container that hook servers get.
struct HookContainer {
  std::shared_ptr<HookPod> pod;
  ContainerId id{};
  api::ContainerResourceHookRequest request;  // without the pod's part
  HookEnvironment environment{};              // variables that are not in the request
  bool stop_told = false;
};

using HookPodPtr = std::shared_ptr<HookPod>;
using HookContainerPtr = std::shared_ptr<HookContainer>;

// The container's part of a request, with the pod's cgroup parent; and the complete request.
api::ContainerResourceHookRequest OwnRequestOf(const HookContainer& container);
std::string EncodedRequestOf(const HookContainer& container);

// The runtime's objects as hook servers know them: requests about them name only an id, and servers
// need more. Data of a removed object lives on with the calls that use it. Loop's thread only.
class HookView final : public TypedView<HookPod, HookContainer> {
 public:
  using TypedView::TypedView;

  // Adds an object that the runtime has created by this request. Replaces data about this id.
  void AddPod(const PodSandboxId& id, api::PodSandboxHookRequest request);
  void AddContainer(const HookPodPtr& pod, const ContainerId& id,
                    api::ContainerResourceHookRequest request, HookEnvironment environment);

  // Data that is already known stays unchanged: it comes from a request, which has more than the
  // runtime reports. Facts without a status add nothing: the first call about the object, or a
  // later list, does.
  void OnFacts(InventoryPod& pod, const SandboxFacts& facts) override;
  void OnFacts(InventoryContainer& container, const ContainerFacts& facts) override;
  // Docker starts containers again by itself: the next stop is another one.
  void OnStarted(InventoryContainer& container) override;
  // Empty values change nothing.
  void OnValues(InventoryContainer& container, const LinuxResources& values) override;

 private:
  void SetContainer(InventoryContainer& container, HookPodPtr pod,
                    api::ContainerResourceHookRequest request, HookEnvironment environment);
};

}  // namespace resmgr::hooks
