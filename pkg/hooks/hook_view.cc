// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_view.h"

#include <utility>

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
  return ToCreateRequest(create, details);
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

void HookView::AddPod(const PodSandboxId& id, api::PodSandboxHookRequest request) {
  Set(*inventory().AddPod(id),
      std::make_shared<HookPod>(HookPod{.id = id, .request = std::move(request)}));
}

void HookView::AddContainer(const HookPodPtr& pod, const ContainerId& id,
                            api::ContainerResourceHookRequest request,
                            HookEnvironment environment) {
  SetContainer(*inventory().AddContainer(inventory().AddPod(pod->id), id), pod, std::move(request),
               std::move(environment));
}

void HookView::SetContainer(InventoryContainer& container, HookPodPtr pod,
                            api::ContainerResourceHookRequest request,
                            HookEnvironment environment) {
  // The request's resources of the pod are newer than those at the sandbox's creation.
  if (request.has_pod_resources() && request.pod_resources().ByteSizeLong() > 0) {
    *pod->request.mutable_resources() = request.pod_resources();
  }
  request.clear_pod_meta();
  request.clear_pod_resources();
  request.clear_pod_annotations();
  request.clear_pod_labels();
  request.mutable_container_meta()->set_id(std::string(container.id.value()));
  Set(container,
      std::make_shared<HookContainer>(HookContainer{.pod = std::move(pod),
                                                    .id = container.id,
                                                    .request = std::move(request),
                                                    .environment = std::move(environment)}));
}

void HookView::OnFacts(InventoryPod& pod, const SandboxFacts& facts) {
  if (Of(pod) != nullptr || facts.status_missing) return;
  Set(pod, std::make_shared<HookPod>(
               HookPod{.id = pod.id, .request = ToPodRequest(facts.pod, facts.attempt)}));
}

void HookView::OnFacts(InventoryContainer& container, const ContainerFacts& facts) {
  HookPodPtr pod = Of(*container.pod);
  if (pod == nullptr || Of(container) != nullptr || facts.status_missing) return;
  SetContainer(container, std::move(pod), RequestOf(facts), nullptr);
}

void HookView::OnStarted(InventoryContainer& container) {
  if (const HookContainerPtr data = Of(container)) data->stop_told = false;
}

void HookView::OnValues(InventoryContainer& container, const LinuxResources& values) {
  if (const HookContainerPtr data = Of(container)) {
    data->request.mutable_container_resources()->MergeFrom(ToHookResources(values));
  }
}

}  // namespace resmgr::hooks
