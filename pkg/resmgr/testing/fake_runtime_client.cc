// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/testing/fake_runtime_client.h"

#include <algorithm>
#include <utility>

namespace resmgr::test {
namespace {

std::string Describe(const ContainerId& id, const ResourceValues& adjustment) {
  std::string text(id.value());
  if (adjustment.cpus) text += " cpus=" + adjustment.cpus->ToString();
  if (adjustment.mems) text += " mems=" + adjustment.mems->ToString();
  if (adjustment.cpu_shares) text += fmt::format(" shares={}", *adjustment.cpu_shares);
  if (adjustment.cpu_quota) text += fmt::format(" quota={}", *adjustment.cpu_quota);
  if (adjustment.cpu_period) text += fmt::format(" period={}", *adjustment.cpu_period);
  if (adjustment.memory_limit) text += fmt::format(" memory={}", *adjustment.memory_limit);
  if (adjustment.memory_swap_limit) text += fmt::format(" swap={}", *adjustment.memory_swap_limit);
  return text;
}

}  // namespace

std::string CpuList(const ResourceValues& adjustment) {
  return adjustment.cpus ? adjustment.cpus->ToString() : "";
}

std::string WithCpus(const ContainerId& id, std::string_view cpus) {
  return fmt::format("{} cpus={}", id.value(), cpus);
}

void FakeRuntimeClient::UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                                        std::function<void(Status)> done) {
  if (on_update) on_update();
  history.push_back(Describe(id, adjustment));
  updates.push_back({id, adjustment, std::move(done)});
}

void FakeRuntimeClient::ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) {
  lists.push_back({std::move(known), std::move(done)});
}

RuntimeContainer* FakeRuntimeClient::Find(const ContainerId& id) {
  const auto found = std::find_if(held.containers.begin(), held.containers.end(),
                                  [&id](const auto& container) { return container.id == id; });
  return found == held.containers.end() ? nullptr : &*found;
}

void FakeRuntimeClient::Remove(const ContainerId& id) {
  std::erase_if(held.containers, [&id](const auto& container) { return container.id == id; });
}

std::string FakeRuntimeClient::CpusOf(const ContainerId& id) {
  const RuntimeContainer* const container = Find(id);
  if (container == nullptr) return "";
  const auto in_force = in_force_.find(id);
  return in_force == in_force_.end() ? container->resources.cpuset_cpus.value_or("")
                                     : in_force->second;
}

void FakeRuntimeClient::Apply(const ContainerId& id, const ResourceValues& adjustment) {
  RuntimeContainer* const container = Find(id);
  if (container == nullptr) return;
  ++applied_[id];
  if (adjustment.cpus) in_force_.erase(id);
  container->resources = Merged(container->resources, AsResources(adjustment));
}

void FakeRuntimeClient::ApplyPart(const ContainerId& id, const ResourceValues& adjustment,
                                  Part part) {
  const RuntimeContainer* const container = Find(id);
  if (container == nullptr || !adjustment.cpus) return;
  const std::string before = CpusOf(id);
  if (part == Part::kReport) {
    Apply(id, adjustment);
    in_force_[id] = before;
  } else {
    ++applied_[id];
    in_force_[id] = CpuList(adjustment);
  }
}

void FakeRuntimeClient::ReportTruth() {
  for (const auto& [id, cpus] : std::exchange(in_force_, {})) {
    if (RuntimeContainer* const container = Find(id)) container->resources.cpuset_cpus = cpus;
  }
}

void FakeRuntimeClient::BeginStart(const ContainerId& id) {
  starts_[id] = CpusOf(id);
}

void FakeRuntimeClient::EndStart(const ContainerId& id) {
  RuntimeContainer* const container = Find(id);
  const auto start = starts_.find(id);
  if (container == nullptr) return;
  container->state = ContainerState::kRunning;
  if (start == starts_.end()) return;
  if (start->second != container->resources.cpuset_cpus.value_or("")) in_force_[id] = start->second;
  starts_.erase(start);
}

uint64_t FakeRuntimeClient::Applied(const ContainerId& id) const {
  const auto found = applied_.find(id);
  return found == applied_.end() ? 0 : found->second;
}

void FakeRuntimeClient::Answer(size_t index, Status status) {
  const Update update = TakeAt(updates, index);
  if (status.ok() && Find(update.id) == nullptr) {
    status = NotFound("no container {}", update.id.value());
  }
  if (status.ok()) Apply(update.id, update.adjustment);
  update.done(status);
}

size_t FakeRuntimeClient::AnswerAll() {
  size_t answered = 0;
  for (; !updates.empty(); ++answered)
    Answer(0);
  return answered;
}

void FakeRuntimeClient::DropAll() {
  updates.clear();
  lists.clear();
}

void FakeRuntimeClient::AnswerList() {
  const List list = TakeAt(lists, 0);
  RuntimeInventory told = held;
  for (Pod& pod : told.pods) {
    const bool brief = list.known.pod && list.known.pod(pod);
    if (brief) told.brief.pods.insert(pod.id);
    if (!brief) ++statuses;
    if (!brief && unclear) told.unclear.pods.insert(pod.id);
    if (!brief && !unclear) continue;
    pod.qos = QosClass::kBestEffort;
    pod.cgroup_parent.clear();
  }
  for (RuntimeContainer& container : told.containers) {
    const bool brief = list.known.container && list.known.container(container);
    if (brief) told.brief.containers.insert(container.id);
    if (!brief) ++statuses;
    if (!brief && unclear) told.unclear.containers.insert(container.id);
    if (!brief && !unclear) continue;
    container.resources = {};
    container.started_at.reset();
  }
  if (!told.unclear.pods.empty() || !told.unclear.containers.empty()) {
    told.unclear.why = Internal("the shim hangs");
  }
  list.done(told);
}

void FakeRuntimeClient::FailList(const Status& status) {
  TakeAt(lists, 0).done(status);
}

}  // namespace resmgr::test
