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

// A pod sandbox, as hook servers are told of it.
struct HookPod {
  PodSandboxId id{};
  api::PodSandboxHookRequest request;
  bool stop_told = false;  // servers heard that it is stopped
};

// A container, as hook servers are told of it.
struct HookContainer {
  std::shared_ptr<HookPod> pod;
  ContainerId id{};
  api::ContainerResourceHookRequest request;  // without what is the pod's
  HookEnvironment environment{};              // as far as it is not in the request
  bool stop_told = false;
};

using HookPodPtr = std::shared_ptr<HookPod>;
using HookContainerPtr = std::shared_ptr<HookContainer>;

// Its part of what servers are sent, with the pod's cgroup parent, and all of that.
api::ContainerResourceHookRequest OwnRequestOf(const HookContainer& container);
std::string EncodedRequestOf(const HookContainer& container);

// The pod sandboxes and containers that exist at the runtime: requests about them name only an id,
// and hook servers want to know more. Bounded by what the runtime has. A record that is removed
// lives on with the calls that use it. Loop's thread only.
class HookStore {
 public:
  // The runtime has created it, as the request said that it got. Takes the place of what is known
  // under this id.
  HookPodPtr AddPod(const PodSandboxId& id, api::PodSandboxHookRequest request);
  HookContainerPtr AddContainer(HookPodPtr pod, const ContainerId& id,
                                api::ContainerResourceHookRequest request,
                                HookEnvironment environment = nullptr);
  // What the runtime tells of one that is not known yet; what is known already stays as it is.
  HookPodPtr Learn(const SandboxFacts& facts);
  HookContainerPtr Learn(HookPodPtr pod, const ContainerFacts& facts);

  // What is in force of one that exists has changed. What is empty stays.
  void SetValues(const ContainerId& id, const ResourceValues& values);

  // By the runtime's id or an unambiguous beginning of it. nullptr: not known.
  HookPodPtr FindPod(std::string_view id) const;
  HookContainerPtr FindContainer(std::string_view id) const;

  void ForEachContainer(const std::function<void(const HookContainer&)>& visit) const;

  // It does not exist any more; with the pod go its containers.
  void Remove(const HookPod& pod);
  void Remove(const HookContainer& container);

  // Everything. Records live on with the calls that use them.
  void Clear();

  // A list of all that the runtime has: what was known when it was begun and is not in it is gone.
  // What is created or removed meanwhile is not changed by it. One list at a time.
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
  Ids before_;                                  // known when the list was begun
  Ids removed_;                                 // since then
  ById<api::LinuxContainerResources> updated_;  // since then, of those that were not known
};

}  // namespace resmgr::hooks
