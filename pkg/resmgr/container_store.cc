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

// Returns the end if no key begins so, or several do.
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

void ContainerStore::SetStopped(PodRecord& pod, bool stopped) {
  if (std::exchange(pod.stopped, stopped) != stopped) CountOverhead(pod);
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

// `promised` is the overhead that the scheduler counts: nothing for a finished pod, whose sandbox
// stays until the pod is deleted, and never the configured overhead.
void ContainerStore::CountOverhead(PodRecord& pod) {
  overheads_ -= pod.counted;
  pod.counted = {.shown = OverheadOf(pod.pod),
                 .promised = pod.stopped ? MilliCpu{} : OverheadFrom(pod.pod.overhead).cpu};
  overheads_ += pod.counted;
}

ContainerStore::~ContainerStore() {
  for (const auto& [key, record] : containers_)
    delete record;
}

PodRecord* ContainerStore::FindPod(const PodSandboxId& id) {
  const auto found = pods_.find(id);
  return found == pods_.end() ? nullptr : &found->second;
}

void ContainerStore::ErasePod(const PodSandboxId& id) {
  const auto found = pods_.find(id);
  if (found == pods_.end()) return;
  overheads_ -= found->second.counted;
  pods_.erase(found);
}

ContainerRecord& ContainerStore::Add(PodRecord& pod, std::string name) {
  const ContainerKey key = UnusedKey();
  auto made = std::make_unique<ContainerRecord>(pod);
  containers_.push_back({.key = key, .record = made.get()});
  ContainerRecord& record = *made.release();
  record.container.key = key;
  record.container.name = std::move(name);
  pod.containers.push_back(key);
  pod.attempts[PodRecord::NameHash(record.container.name)].push_back(key);
  Touch(record);
  return record;
}

ContainerStore::Containers::const_iterator ContainerStore::Position(ContainerKey key) const {
  return std::ranges::lower_bound(containers_, key, {}, &Entry::key);
}

ContainerRecord* ContainerStore::Find(ContainerKey key) const {
  if (last_found_.key == key) return last_found_.record;
  const auto found = Position(key);
  if (found == containers_.end() || found->key != key) return nullptr;
  last_found_ = *found;
  return found->record;
}

ContainerRecord* ContainerStore::FindFollowed(ContainerKey key) const {
  ContainerRecord* const record = Find(key);
  return record != nullptr && record->push ? record : nullptr;
}

ContainerRecord* ContainerStore::FindById(const ContainerId& id) const {
  const auto found = by_id_.find(id.value());
  return found == by_id_.end() ? nullptr : found->second;
}

ContainerRecord* ContainerStore::Resolve(const ContainerId& id) const {
  if (ContainerRecord* const record = FindById(id)) return record;
  const auto only = OnlyOneThatBegins(by_id_, id.value());
  return only == by_id_.end() ? nullptr : only->second;
}

PodRecord* ContainerStore::Resolve(const PodSandboxId& id) {
  if (PodRecord* const pod = FindPod(id)) return pod;
  const auto only = OnlyOneThatBegins(pods_, id.value());
  return only == pods_.end() ? nullptr : &only->second;
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
  const auto found = Position(key);
  if (found == containers_.end() || found->key != key) return;
  const std::unique_ptr<ContainerRecord> record(found->record);
  containers_.erase(found);
  if (last_found_.key == key) last_found_ = {};
  EraseFrom(record->pod->containers, key);
  EraseAttempt(*record);
  const auto by_id = by_id_.find(record->container.id.value());
  if (by_id != by_id_.end() && by_id->second == record.get()) by_id_.erase(by_id);
}

const Pod* ContainerStore::View::FindPod(const PodSandboxId& id) const {
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
  for (const auto& [key, record] : store_.containers_) {
    if (everything_ || record->Placeable()) visit(record->pod->pod, record->container);
  }
}

}  // namespace resmgr
