// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/host_view.h"

#include <fmt/format.h>

#include "pkg/nri/host/merge/reply_edits.h"
#include "pkg/nri/host/view/object_views.h"

namespace resmgr::nri {
HostPodPtr HostView::AddPod(api::PodSandbox message, bool ready) {
  InventoryPod& object = *inventory().AddPod(PodSandboxId(message.id()));
  HostPodPtr pod = Of(object);
  if (pod == nullptr) pod = std::make_shared<HostPod>(edits_);
  pod->message.Edit() = std::move(message);
  pod->ready = ready;
  Set(object, pod);
  return pod;
}

void HostView::RemovePod(const HostPod& pod) {
  const auto found = inventory().pods().find(pod.message->id());
  if (found == inventory().pods().end() || Of(*found->second).get() != &pod) return;
  ++*edits_;
  Set(*found->second, nullptr);
}

HostContainerPtr HostView::Begin(HostPodPtr pod, api::Container message, uint32_t attempt) {
  HostContainerPtr container = Begin(std::move(pod), message.name(), attempt);
  message.set_id(container->alias);
  message.set_pod_sandbox_id(container->pod->message->id());
  container->message.Edit() = std::move(message);
  return container;
}

HostContainerPtr HostView::Begin(HostPodPtr pod, std::string_view name, uint32_t attempt) {
  const PodSandboxId pod_id(pod->message->id());
  std::string alias = AliasOf(pod_id, name, attempt);
  for (int again = 1; by_alias_.contains(alias); ++again)
    alias = AliasOf(pod_id, fmt::format("{}/{}", name, again), attempt);
  auto container = std::make_shared<HostContainer>(edits_);
  container->pod = std::move(pod);
  container->alias = alias;
  by_alias_.emplace(std::move(alias), container);
  return container;
}

void HostView::SetId(const HostContainerPtr& container, const ContainerId& id) {
  InventoryPodPtr pod = inventory().AddPod(PodSandboxId(container->pod->message->id()));
  Bind(container, *inventory().AddContainer(std::move(pod), id));
}

void HostView::Bind(const HostContainerPtr& container, InventoryContainer& object) {
  container->id = object.id;
  container->message.EditLater([text = std::string(object.id.value())](api::Container& message) {
    (*message.mutable_annotations())[std::string(kIdAnnotation)] = text;
  });
  const HostContainerPtr former = Of(object);
  if (former != nullptr && former != container) by_alias_.erase(former->alias);
  Set(object, container);
}

HostContainerPtr HostView::Find(std::string_view id) const {
  if (const auto alias = by_alias_.find(id); alias != by_alias_.end()) return alias->second;
  return FindContainer(id);
}

void HostView::Remove(const HostContainer& container) {
  ++*edits_;
  const auto alias = by_alias_.find(container.alias);
  if (alias == by_alias_.end() || alias->second.get() != &container) return;
  // Keeps the container until this function returns.
  const HostContainerPtr removed = alias->second;
  by_alias_.erase(alias);
  const auto object = inventory().containers().find(container.id.value());
  if (object != inventory().containers().end() && Of(*object->second) == removed) {
    Set(*object->second, nullptr);
  }
}

void HostView::EndChange(HostContainer& container, const HostContainer::Change& change,
                         Outcome::Kind end) {
  std::erase_if(container.changing,
                [&change](const auto& each) { return each.expired() || each.lock() == change; });
  const bool unclear = end == Outcome::Kind::kUnclear;
  if (end == Outcome::Kind::kDone) {
    OverlayResources(*change, *container.message.Edit().mutable_linux()->mutable_resources());
  }
  if (unclear && container.unclear == nullptr) {
    container.unclear = std::make_unique<HostContainer::Unclear>();
  }
  if (container.unclear == nullptr) return;
  const bool counts = unclear || end == Outcome::Kind::kDone;
  AddUnclear(*container.unclear, counts ? *change : api::LinuxResources());
}

// A list under way may have older values.
void HostView::AddUnclear(HostContainer::Unclear& unclear, const api::LinuxResources& values) {
  OverlayResources(values, unclear.values);
  unclear.since = inventory().time();
  inventory().RefreshSoon();
}

void HostView::EndUnclear(HostContainer& container, const ContainerFacts& facts) {
  if (container.unclear == nullptr || facts.status_missing || container.IsBeingChanged()) return;
  if (inventory().asked_at() <= container.unclear->since) return;
  api::LinuxResources& resources = *container.message.Edit().mutable_linux()->mutable_resources();
  OverlayResources(container.unclear->values, resources);
  OverlayResources(ToNriResources(facts.container.resources, facts.details.memory_swap_limit,
                                  facts.details.unified),
                   resources);
  container.unclear = nullptr;
}

std::vector<HostContainerPtr> HostView::ContainersOf(const HostPod& pod) const {
  std::vector<HostContainerPtr> containers;
  for (const auto& [alias, container] : by_alias_)
    if (container->pod.get() == &pod) containers.push_back(container);
  return containers;
}

std::vector<HostContainerPtr> HostView::Containers() const {
  std::vector<HostContainerPtr> containers;
  for (const auto& [alias, container] : by_alias_)
    containers.push_back(container);
  return containers;
}

SharedSyncMessages HostView::All(bool real_ids) {
  Encoded& encoded = encoded_.at(real_ids ? 1 : 0);
  SharedSyncMessages all = encoded.edits == *edits_ ? encoded.messages.lock() : nullptr;
  if (all == nullptr) {
    all = Encode(real_ids);
    encoded = {.edits = *edits_, .messages = all};
  }
  return all;
}

SharedSyncMessages HostView::Encode(bool real_ids) {
  SyncWriter writer;
  ForEachPod([&writer](const HostPodPtr& pod) {
    if (!pod->remove_told) writer.Add(*pod->message);
  });
  for (const auto& [alias, container] : by_alias_) {
    if (container->HasEnded()) continue;
    container->told = true;
    if (!container->creating() && !real_ids) {
      writer.Add(*container->message);
      continue;
    }
    api::Container view = ViewOf(*container, real_ids);
    // NRI has no state for a container that is being created, but plugins expect such a container
    // in the list.
    if (container->creating()) view.set_state(api::CONTAINER_CREATED);
    writer.Add(view);
  }
  return writer.Finish();
}

// Resources that the former message has were set after the list that lacked the status.
void HostView::Complete(HostPod& pod, const SandboxFacts& facts) {
  api::PodSandbox whole = ToPodSandbox(facts.pod, facts);
  const api::LinuxPodSandbox& former = pod.message->linux();
  OverlayResources(former.pod_overhead(), *whole.mutable_linux()->mutable_pod_overhead());
  OverlayResources(former.pod_resources(), *whole.mutable_linux()->mutable_pod_resources());
  pod.message.Edit() = std::move(whole);
  pod.incomplete = false;
}

void HostView::Complete(HostContainer& container, const ContainerFacts& facts) {
  api::Container whole = ToContainer(facts);
  const api::Container& former = *container.message;
  whole.set_id(former.id());
  whole.set_state(former.state());
  (*whole.mutable_annotations())[std::string(kIdAnnotation)] = container.id.value();
  OverlayResources(former.linux().resources(), *whole.mutable_linux()->mutable_resources());
  container.message.Edit() = std::move(whole);
  container.incomplete = false;
}

void HostView::OnFacts(InventoryPod& pod, const SandboxFacts& facts) {
  if (const HostPodPtr known = Of(pod)) {
    if (known->incomplete && !facts.status_missing) Complete(*known, facts);
    if (known->ready && !facts.ready) ends_.pod_stopped(known);
    return;
  }
  auto added = std::make_shared<HostPod>(edits_);
  added->message.Edit() = ToPodSandbox(facts.pod, facts);
  added->ready = facts.ready;
  added->incomplete = facts.status_missing;
  Set(pod, std::move(added));
}

void HostView::OnFacts(InventoryContainer& object, const ContainerFacts& facts) {
  if (const HostContainerPtr known = Of(object)) {
    const bool ended = facts.container.state == ContainerState::kExited;
    // A report without an end may be older than the known end; if the container runs again, it was
    // started later. The end itself may have been missed.
    const bool runs_anew = known->RunsAnew(facts);
    if (known->incomplete && !facts.status_missing) Complete(*known, facts);
    if (runs_anew) return ends_.runs_again(known, facts);
    if (!ended && known->HasEnded()) return;
    AddFacts(facts, known->message.Edit());
    EndUnclear(*known, facts);
    if (ended && !known->stop_told) ends_.exited(known);
    return;
  }
  const HostPodPtr pod = Of(*object.pod);
  if (pod == nullptr) return;
  const RuntimeContainer& listed = facts.container;
  const auto planned = by_alias_.find(AliasOf(object.pod->id, listed.name, listed.attempt));
  // Found by its alias: the runtime has created it, and the reply is under way or lost.
  if (planned != by_alias_.end() && planned->second->creating()) {
    const HostContainerPtr container = planned->second;
    AddFacts(facts, container->message.Edit());
    Bind(container, object);
  } else {
    const HostContainerPtr added = Begin(pod, ToContainer(facts), listed.attempt);
    added->incomplete = facts.status_missing;
    Bind(added, object);
  }
}

void HostView::OnValues(InventoryContainer& container, const LinuxResources& values) {
  const HostContainerPtr data = Of(container);
  if (data == nullptr) return;
  data->message.EditLater([values](api::Container& message) {
    OverlayResources(ToNriResources(values), *message.mutable_linux()->mutable_resources());
  });
  if (data->unclear != nullptr) AddUnclear(*data->unclear, ToNriResources(values));
}

void HostView::OnStarted(InventoryContainer& container) {
  if (const HostContainerPtr data = Of(container)) ends_.started(data);
}

void HostView::OnStopped(InventoryContainer& container) {
  if (const HostContainerPtr data = Of(container)) ends_.stopped(data);
}

void HostView::OnGone(InventoryPod& pod) {
  ++*edits_;
  const HostPodPtr data = Of(pod);
  if (data == nullptr) return;
  // Plugins that connect from now on are shown neither the pod (HostEvents::RemovePod) nor its
  // created containers, since these count as ended.
  for (const HostContainerPtr& container : ContainersOf(*data))
    if (!container->creating()) container->SetState(api::CONTAINER_STOPPED);
  ends_.pod_gone(data);
}

void HostView::OnGone(InventoryContainer& container) {
  const HostContainerPtr data = Of(container);
  if (data == nullptr) return;
  data->SetState(api::CONTAINER_STOPPED);
  ends_.gone(data);
}

api::Container ViewOf(const HostContainer& container, bool real_ids) {
  api::Container view = *container.message;
  if (real_ids && !container.creating()) view.set_id(std::string(container.id.value()));
  return view;
}

std::string AliasOf(const PodSandboxId& pod, std::string_view name, uint32_t attempt) {
  constexpr int kParts = 4;  // parts of 64 bits
  std::string text = fmt::format("{}/{}/{}/{}", 0, pod.value(), attempt, name);
  std::array<size_t, kParts> parts;
  for (size_t& part : parts) {
    part = TextHash()(text);
    ++text[0];
  }
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", parts[0], parts[1], parts[2], parts[3]);
}

}  // namespace resmgr::nri
