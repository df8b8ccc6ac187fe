// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/host_inventory.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/only_one.h"
#include "pkg/nri/host/id_aliases.h"

namespace resmgr::nri {

namespace {

template <typename Records>
std::vector<typename Records::mapped_type> ValuesOf(const Records& records) {
  std::vector<typename Records::mapped_type> values;
  values.reserve(records.size());
  for (const auto& [id, record] : records)
    values.push_back(record);
  return values;
}

bool HasEnded(const HostContainer& container) {
  return container.message->state() == api::CONTAINER_STOPPED;
}

}  // namespace

HostPodPtr HostInventory::AddPod(api::PodSandbox message, bool ready) {
  HostPodPtr& pod = pods_[message.id()];
  if (pod == nullptr) pod = std::make_shared<HostPod>(edits_);
  pod->message.Edit() = std::move(message);
  pod->ready = ready;
  return pod;
}

HostPodPtr HostInventory::FindPod(std::string_view id) const {
  return OnlyOneThatBeginsWith(pods_, id);
}

void HostInventory::RemovePod(const HostPod& pod) {
  const auto found = pods_.find(pod.message->id());
  if (found == pods_.end() || found->second.get() != &pod) return;
  ++*edits_;
  pods_.erase(found);
}

HostContainerPtr HostInventory::Begin(HostPodPtr pod, api::Container message, uint32_t attempt) {
  HostContainerPtr container = Begin(std::move(pod), message.name(), attempt);
  message.set_id(container->alias);
  message.set_pod_sandbox_id(container->pod->message->id());
  container->message.Edit() = std::move(message);
  return container;
}

HostContainerPtr HostInventory::Begin(HostPodPtr pod, std::string_view name, uint32_t attempt) {
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

void HostInventory::SetId(const HostContainerPtr& container, const ContainerId& id) {
  container->id = id;
  const std::string text(id.value());
  container->message.EditLater([text](api::Container& message) {
    (*message.mutable_annotations())[std::string(kIdAnnotation)] = text;
  });
  HostContainerPtr& place = by_id_[text];
  if (place != nullptr && place != container) by_alias_.erase(place->alias);
  place = container;
}

HostContainerPtr HostInventory::Find(std::string_view id) const {
  if (const auto alias = by_alias_.find(id); alias != by_alias_.end()) return alias->second;
  return OnlyOneThatBeginsWith(by_id_, id);
}

void HostInventory::Remove(const HostContainer& container) {
  const auto erase = [&container](auto& records, std::string_view id) {
    const auto found = records.find(id);
    if (found != records.end() && found->second.get() == &container) records.erase(found);
  };
  ++*edits_;
  // A copy: the record may be freed with its last entry.
  const std::string alias = container.alias;
  erase(by_id_, container.id.value());
  erase(by_alias_, alias);
}

std::vector<HostContainerPtr> HostInventory::ContainersOf(const HostPod& pod) const {
  std::vector<HostContainerPtr> containers;
  for (const auto& [alias, container] : by_alias_)
    if (container->pod.get() == &pod) containers.push_back(container);
  return containers;
}

std::vector<HostPodPtr> HostInventory::Pods() const {
  return ValuesOf(pods_);
}

std::vector<HostContainerPtr> HostInventory::Containers() const {
  return ValuesOf(by_alias_);
}

SharedSyncMessages HostInventory::All(bool real_ids) {
  Encoded& encoded = encoded_.at(real_ids ? 1 : 0);
  SharedSyncMessages all = encoded.edits == *edits_ ? encoded.messages.lock() : nullptr;
  if (all == nullptr) {
    all = Encode(real_ids);
    encoded = {.edits = *edits_, .messages = all};
  }
  return all;
}

SharedSyncMessages HostInventory::Encode(bool real_ids) {
  SyncWriter writer;
  for (const auto& [id, pod] : pods_) {
    if (!pod->remove_told) writer.Add(*pod->message);
  }
  for (const auto& [alias, container] : by_alias_) {
    if (HasEnded(*container)) continue;
    container->told = true;
    if (!container->creating() && !real_ids) {
      writer.Add(*container->message);
      continue;
    }
    api::Container view = ViewOf(*container, real_ids);
    // NRI has no state for a container that is being created, and plugins expect it in the list.
    if (container->creating()) view.set_state(api::CONTAINER_CREATED);
    writer.Add(view);
  }
  return writer.Finish();
}

api::Container ViewOf(const HostContainer& container, bool real_ids) {
  api::Container view = *container.message;
  if (real_ids && !container.creating()) view.set_id(std::string(container.id.value()));
  return view;
}

}  // namespace resmgr::nri
