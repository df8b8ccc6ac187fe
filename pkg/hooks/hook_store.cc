// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_store.h"

#include <utility>
#include <vector>

#include "pkg/base/only_one.h"
#include "pkg/hooks/hook_messages.h"

namespace resmgr::hooks {
namespace {

// The container's part of the request.
api::ContainerResourceHookRequest RequestOf(const ContainerFacts& facts) {
  const RuntimeContainer& listed = facts.container;
  CreateRequest create;
  create.name = listed.name;
  create.attempt = listed.attempt;
  create.annotations = listed.annotations;
  create.resources = listed.resources;
  ContainerDetails details;
  details.memory_swap_limit = facts.details.memory_swap_limit;
  details.unified = facts.details.unified;
  details.environment = facts.requested_environment.value_or(facts.details.environment);
  return ToCreateRequest(Pod(), 0, create, std::move(details));
}

}  // namespace

api::ContainerResourceHookRequest OwnRequestOf(const HookContainer& container) {
  api::ContainerResourceHookRequest request = container.request;
  if (request.pod_cgroup_parent().empty())
    request.set_pod_cgroup_parent(container.pod->request.cgroup_parent());
  return request;
}

std::string EncodedRequestOf(const HookContainer& container) {
  std::string encoded = EncodedPodPart(container.pod->request, /*resources=*/true);
  AppendEnvironment(container.environment, encoded);
  OwnRequestOf(container).AppendToString(&encoded);
  return encoded;
}

HookPodPtr HookStore::AddPod(const PodSandboxId& id, api::PodSandboxHookRequest request) {
  HookPodPtr& pod = pods_[std::string(id.value())];
  pod = std::make_shared<HookPod>(HookPod{.id = id, .request = std::move(request)});
  return pod;
}

HookContainerPtr HookStore::AddContainer(HookPodPtr pod, const ContainerId& id,
                                         api::ContainerResourceHookRequest request,
                                         HookEnvironment environment) {
  // These are newer than the values at the sandbox's creation.
  if (request.has_pod_resources() && request.pod_resources().ByteSizeLong() > 0) {
    *pod->request.mutable_resources() = request.pod_resources();
  }
  request.clear_pod_meta();
  request.clear_pod_resources();
  request.clear_pod_annotations();
  request.clear_pod_labels();
  request.mutable_container_meta()->set_id(std::string(id.value()));
  HookContainerPtr& container = containers_[request.container_meta().id()];
  container = std::make_shared<HookContainer>(HookContainer{.pod = std::move(pod),
                                                            .id = id,
                                                            .request = std::move(request),
                                                            .environment = std::move(environment)});
  return container;
}

HookPodPtr HookStore::Learn(const SandboxFacts& facts) {
  const auto known = pods_.find(facts.pod.id.value());
  if (known != pods_.end()) return known->second;
  return AddPod(facts.pod.id, ToPodRequest(facts.pod, facts.attempt));
}

HookContainerPtr HookStore::Learn(HookPodPtr pod, const ContainerFacts& facts) {
  const auto known = containers_.find(facts.container.id.value());
  if (known != containers_.end()) return known->second;
  return AddContainer(std::move(pod), facts.container.id, RequestOf(facts));
}

void HookStore::SetValues(const ContainerId& id, const ResourceValues& values) {
  const api::LinuxContainerResources resources = ToHookResources(AsResources(values));
  const auto known = containers_.find(id.value());
  if (known != containers_.end()) {
    known->second->request.mutable_container_resources()->MergeFrom(resources);
  } else if (listing_) {
    // The list under way may have older values.
    updated_[std::string(id.value())].MergeFrom(resources);
  }
}

HookPodPtr HookStore::FindPod(std::string_view id) const {
  return OnlyOneThatBeginsWith(pods_, id);
}

HookContainerPtr HookStore::FindContainer(std::string_view id) const {
  return OnlyOneThatBeginsWith(containers_, id);
}

void HookStore::ForEachContainer(const std::function<void(const HookContainer&)>& visit) const {
  for (const auto& [id, container] : containers_)
    visit(*container);
}

void HookStore::NoteRemoval(std::string_view id) {
  if (listing_) removed_.emplace(id);
}

void HookStore::Remove(const HookPod& pod) {
  NoteRemoval(pod.id.value());
  std::vector<HookContainerPtr> own;
  for (const auto& [id, container] : containers_)
    if (container->pod->id == pod.id) own.push_back(container);
  for (const HookContainerPtr& container : own)
    Remove(*container);
  // Removing the containers may free `pod` and its id.
  if (const auto found = pods_.find(pod.id.value()); found != pods_.end()) pods_.erase(found);
}

void HookStore::Remove(const HookContainer& container) {
  NoteRemoval(container.id.value());
  const auto found = containers_.find(container.id.value());
  if (found != containers_.end()) containers_.erase(found);
}

void HookStore::Clear() {
  pods_.clear();
  containers_.clear();
  before_.clear();
}

void HookStore::BeginList() {
  GiveUpList();
  listing_ = true;
  for (const auto& [id, pod] : pods_)
    before_.insert(id);
  for (const auto& [id, container] : containers_)
    before_.insert(id);
}

void HookStore::TakeList(const RuntimeAccess::Everything& everything) {
  for (const SandboxFacts& facts : everything.sandboxes)
    if (!removed_.contains(facts.pod.id.value())) Learn(facts);
  for (const ContainerFacts& facts : everything.containers) {
    const RuntimeContainer& listed = facts.container;
    const auto pod = pods_.find(listed.pod_id.value());
    if (pod != pods_.end() && !removed_.contains(listed.id.value())) Learn(pod->second, facts);
  }
  for (const auto& [id, resources] : updated_) {
    if (const auto known = containers_.find(id); known != containers_.end()) {
      known->second->request.mutable_container_resources()->MergeFrom(resources);
    }
  }
  DropMissing(everything);
  GiveUpList();
}

void HookStore::DropMissing(const RuntimeAccess::Everything& everything) {
  for (const SandboxFacts& facts : everything.sandboxes)
    if (const auto listed = before_.find(facts.pod.id.value()); listed != before_.end())
      before_.erase(listed);
  for (const ContainerFacts& facts : everything.containers)
    if (const auto listed = before_.find(facts.container.id.value()); listed != before_.end())
      before_.erase(listed);
  for (const std::string& id : everything.unlisted)
    if (const auto listed = before_.find(id); listed != before_.end()) before_.erase(listed);
  for (const std::string& id : before_) {
    if (const auto container = containers_.find(id); container != containers_.end()) {
      containers_.erase(container);
    }
    if (const auto pod = pods_.find(id); pod != pods_.end()) {
      const HookPodPtr gone = pod->second;
      Remove(*gone);
    }
  }
}

void HookStore::GiveUpList() {
  listing_ = false;
  before_.clear();
  removed_.clear();
  updated_.clear();
}

}  // namespace resmgr::hooks
