// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/container_store.h"

#include <algorithm>
#include <utility>

namespace resmgr {

namespace {

template <typename Keys>
void EraseFrom(Keys& ascending, ContainerKey key) {
  const auto found = std::ranges::lower_bound(ascending, key);
  if (found != ascending.end() && *found == key) ascending.erase(found);
}

std::string_view TextOf(std::string_view id) {
  return id;
}
std::string_view TextOf(const PodSandboxId& id) {
  return id.value();
}

// The end where none or several do.
template <typename Map>
auto OnlyOneThatBegins(Map& by_id, std::string_view beginning) {
  auto only = by_id.end();
  if (beginning.empty()) return only;
  for (auto it = by_id.begin(); it != by_id.end(); ++it) {
    if (!TextOf(it->first).starts_with(beginning)) continue;
    if (only != by_id.end()) return by_id.end();
    only = it;
  }
  return only;
}

ContainerKey KeyOf(const ContainerRecord* record) {
  return record->container.key;
}

}  // namespace

ContainerStore::ContainerStore(RuntimesConfig runtimes)
    : runtimes_(std::move(runtimes)), all_(*this, true), placeable_(*this, false) {}

PodRecord& ContainerStore::PutPod(Pod pod) {
  PodRecord& record = pods_[pod.id];
  record.pod = std::move(pod);
  CountOverhead(record);
  Touch(record);
  return record;
}

void ContainerStore::MarkStopped(PodRecord& pod) {
  pod.stopped = true;
  CountOverhead(pod);
}

Overhead ContainerStore::OverheadOf(const Pod& pod) const {
  const Overhead stated = OverheadFrom(pod.overhead);
  if (!stated.empty()) return stated;
  const OverheadConfig& configured = runtimes_.ClassOf(pod.runtime_handler).overhead;
  return {.cpu = configured.cpu, .memory = configured.memory};
}

std::string_view ContainerStore::RuntimeOf(const Pod& pod) const {
  if (runtimes_.runtimes.empty()) return {};
  return runtimes_.ClassOf(pod.runtime_handler).runtime;
}

// A pod that is over keeps its sandbox until it is deleted, while the scheduler gives its overhead
// to others; what the configuration says the scheduler never counted.
void ContainerStore::CountOverhead(PodRecord& pod) {
  overheads_ -= pod.counted;
  pod.counted = {.shown = OverheadOf(pod.pod),
                 .promised = pod.stopped ? MilliCpu{} : OverheadFrom(pod.pod.overhead).cpu};
  overheads_ += pod.counted;
}

PodRecord* ContainerStore::FindPod(const PodSandboxId& id) {
  if (recent_pod_ != nullptr && recent_pod_->pod.id == id) return recent_pod_;
  const auto found = pods_.find(id);
  if (found == pods_.end()) return nullptr;
  return recent_pod_ = &found->second;
}

void ContainerStore::ErasePod(const PodSandboxId& id) {
  recent_pod_ = nullptr;
  const auto found = pods_.find(id);
  if (found == pods_.end()) return;
  overheads_ -= found->second.counted;
  pods_.erase(found);
}

ContainerRecord& ContainerStore::Add(PodRecord& pod, std::string name) {
  const ContainerKey key = UnusedKey();
  ContainerRecord& record = containers_.try_emplace(containers_.end(), key, pod)->second;
  record.container.key = key;
  record.container.name = std::move(name);
  pod.containers.push_back(key);
  pod.attempts[PodRecord::NameHash(record.container.name)].push_back(key);
  recent_[RecentIndex(key)] = &record;
  in_order_.push_back(&record);
  Touch(record);
  return record;
}

ContainerRecord* ContainerStore::Find(ContainerKey key) {
  ContainerRecord*& recent = recent_[RecentIndex(key)];
  if (recent != nullptr && recent->container.key == key) return recent;
  const auto found = containers_.find(key);
  if (found == containers_.end()) return nullptr;
  return recent = &found->second;
}

const ContainerRecord* ContainerStore::Find(ContainerKey key) const {
  const ContainerRecord* const recent = recent_[RecentIndex(key)];
  if (recent != nullptr && recent->container.key == key) return recent;
  const auto found = containers_.find(key);
  return found == containers_.end() ? nullptr : &found->second;
}

ContainerRecord* ContainerStore::FindById(const ContainerId& id) {
  const auto found = by_id_.find(id.value());
  return found == by_id_.end() ? nullptr : found->second;
}

const ContainerRecord* ContainerStore::FindById(const ContainerId& id) const {
  const auto found = by_id_.find(id.value());
  return found == by_id_.end() ? nullptr : found->second;
}

const ContainerRecord* ContainerStore::Resolve(const ContainerId& id) const {
  const auto found = by_id_.find(id.value());
  if (found != by_id_.end()) return found->second;
  const auto only = OnlyOneThatBegins(by_id_, id.value());
  return only == by_id_.end() ? nullptr : only->second;
}

ContainerRecord* ContainerStore::Resolve(const ContainerId& id) {
  return const_cast<ContainerRecord*>(std::as_const(*this).Resolve(id));
}

PodRecord* ContainerStore::Resolve(const PodSandboxId& id) {
  if (PodRecord* const pod = FindPod(id)) return pod;
  const auto only = OnlyOneThatBegins(pods_, id.value());
  return only == pods_.end() ? nullptr : recent_pod_ = &only->second;
}

bool ContainerStore::SetId(ContainerRecord& record, ContainerId& id) {
  record.container.id = std::move(id);
  if (by_id_.try_emplace(record.container.id.value(), &record).second) return true;
  id = std::exchange(record.container.id, {});
  return false;
}

void ContainerStore::EraseAttempt(const ContainerRecord& record) {
  const auto attempts = record.pod->attempts.find(PodRecord::NameHash(record.container.name));
  EraseFrom(attempts->second, record.container.key);
  if (attempts->second.empty()) record.pod->attempts.erase(attempts);
}

void ContainerStore::Rename(ContainerRecord& record, std::string name) {
  EraseAttempt(record);
  std::string before = std::exchange(record.container.name, std::move(name));
  if (record.created_name == nullptr) {
    record.created_name = std::make_unique<std::string>(std::move(before));
  }
  PodRecord::Attempts& attempts = record.pod->attempts[PodRecord::NameHash(record.container.name)];
  const auto at = std::ranges::lower_bound(attempts, record.container.key);
  attempts.insert(at, record.container.key);
  Touch(record);
}

void ContainerStore::Erase(ContainerKey key) {
  const auto found = containers_.find(key);
  if (found == containers_.end()) return;
  const ContainerRecord& record = found->second;
  EraseFrom(record.pod->containers, key);
  EraseAttempt(record);
  const auto by_id = by_id_.find(record.container.id.value());
  if (by_id != by_id_.end() && by_id->second == &record) by_id_.erase(by_id);
  ContainerRecord*& recent = recent_[RecentIndex(key)];
  if (recent == &record) recent = nullptr;
  in_order_.erase(std::ranges::lower_bound(in_order_, key, {}, &KeyOf));
  containers_.erase(found);
}

const Pod* ContainerStore::View::FindPod(const PodSandboxId& id) const {
  const PodRecord* const recent = store_.recent_pod_;
  if (recent != nullptr && recent->pod.id == id) return &recent->pod;
  const auto found = store_.pods_.find(id);
  return found == store_.pods_.end() ? nullptr : &found->second.pod;
}

const Container* ContainerStore::View::FindContainer(ContainerKey key) const {
  const ContainerRecord* const record = store_.Find(key);
  if (record == nullptr || !(everything_ || record->Placeable())) return nullptr;
  return &record->container;
}

void ContainerStore::View::ForEachContainer(
    const std::function<void(const Pod&, const Container&)>& visit) const {
  for (const ContainerRecord* const record : store_.in_order_) {
    if (everything_ || record->Placeable()) visit(record->pod->pod, record->container);
  }
}

bool ContainerStore::OthersOwn(const CpuSet& cpus, ContainerKey key) const {
  return std::ranges::any_of(in_order_, [&](const ContainerRecord* other) {
    if (other->container.key == key || !other->Placeable()) return false;
    return other->container.placement.exclusive.Intersects(cpus);
  });
}

}  // namespace resmgr
