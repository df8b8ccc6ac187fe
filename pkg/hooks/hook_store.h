// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/ids.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/model/request.h"
#include "pkg/model/resource_values.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::hooks {

namespace api = ::runtime::v1alpha1;

// The data about a pod sandbox that hook servers get.
struct HookPod {
  PodSandboxId id{};
  api::PodSandboxHookRequest request;
  bool stop_told = false;  // servers were told that it is stopped
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

// The pod sandboxes and containers of the runtime: requests about them name only an id, and hook
// servers need more. Bounded by the runtime's number of them. A removed record lives on with the
// calls that use it. Loop's thread only.
class HookStore {
 public:
  // Adds one that the runtime has created by this request. Replaces a record of the same id.
  HookPodPtr AddPod(const PodSandboxId& id, api::PodSandboxHookRequest request);
  HookContainerPtr AddContainer(HookPodPtr pod, const ContainerId& id,
                                api::ContainerResourceHookRequest request,
                                HookEnvironment environment = nullptr);
  // Adds one that the runtime has reported; a known record stays unchanged.
  HookPodPtr Learn(const SandboxFacts& facts);
  HookContainerPtr Learn(HookPodPtr pod, const ContainerFacts& facts);

  // Sets new values of an existing container. Empty values change nothing.
  void SetValues(const ContainerId& id, const ResourceValues& values);

  // Finds by the runtime's id or an unambiguous beginning of it. nullptr: unknown.
  HookPodPtr FindPod(std::string_view id) const;
  HookContainerPtr FindContainer(std::string_view id) const;

  void ForEachContainer(const std::function<void(const HookContainer&)>& visit) const;

  // Removes one that does not exist any more; a pod with its containers.
  void Remove(const HookPod& pod);
  void Remove(const HookContainer& container);

  // Removes all. Records live on with the calls that use them.
  void Clear();

  // Begins a list of all that the runtime has: records that were known now and are not in the list
  // are removed. The list does not change what is created or removed meanwhile. One list at a time.
  void BeginList();
  void TakeList(const RuntimeAccess::Everything& everything);
  void GiveUpList();

  size_t size() const { return pods_.size() + containers_.size(); }

 private:
  template <typename Record>
  using ById = std::map<std::string, Record, std::less<>>;
  using Ids = std::set<std::string, std::less<>>;

  void NoteRemoval(std::string_view id);
  void DropMissing(const RuntimeAccess::Everything& everything);

  ById<HookPodPtr> pods_;
  ById<HookContainerPtr> containers_;
  bool listing_ = false;
  Ids before_;                                  // ids that were known when the list was begun
  Ids removed_;                                 // ids removed since then
  ById<api::LinuxContainerResources> updated_;  // updates since then of ids that were not known
};

}  // namespace resmgr::hooks
