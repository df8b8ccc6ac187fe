// SPDX-License-Identifier: Apache-2.0
#include "pkg/runtime/inventory.h"

#include <algorithm>
#include <utility>

#include "pkg/base/ids.h"

namespace resmgr {

Inventory::Inventory(Clock& clock, RuntimeAccess& runtime)
    : clock_(clock), runtime_(runtime), log_(GetLogger("runtime")) {}

void Inventory::Attach(InventoryView& view) {
  const auto taken = [this](size_t slot) {
    return std::ranges::any_of(views_, [slot](auto* each) { return each->slot_ == slot; });
  };
  view.slot_ = 0;
  while (taken(view.slot_))
    ++view.slot_;
  view.attached_ = true;
  views_.push_back(&view);
  // If nothing has happened since a list under way began, that list is complete for this view, too.
  if (!asking_ || count_ != begin_) RefreshSoon();
}

void Inventory::Detach(InventoryView& view) {
  if (std::erase(views_, &view) == 0) return;
  view.attached_ = false;
  for (const auto& [id, pod] : pods_)
    pod->data.at(view.slot_).reset();
  for (const auto& [id, container] : containers_)
    container->data.at(view.slot_).reset();
  if (!views_.empty()) return;
  pods_.clear();
  containers_.clear();
  ready_ = false;
  again_ = false;
  retry_.reset();
}

InventoryPodPtr Inventory::See(const PodSandboxId& id, uint64_t when) {
  // Without a view nothing may be kept: no removal would be noticed.
  if (views_.empty()) return std::make_shared<InventoryPod>(InventoryPod{.id = id});
  InventoryPodPtr& pod = pods_[std::string(id.value())];
  if (pod == nullptr) pod = std::make_shared<InventoryPod>(InventoryPod{.id = id});
  pod->seen = std::max(pod->seen, when);
  return pod;
}

InventoryContainerPtr Inventory::See(InventoryPodPtr pod, const ContainerId& id, uint64_t when) {
  if (views_.empty()) {
    return std::make_shared<InventoryContainer>(
        InventoryContainer{.id = id, .pod = std::move(pod)});
  }
  InventoryContainerPtr& container = containers_[std::string(id.value())];
  if (container == nullptr) {
    container =
        std::make_shared<InventoryContainer>(InventoryContainer{.id = id, .pod = std::move(pod)});
  }
  container->seen = std::max(container->seen, when);
  return container;
}

InventoryPodPtr Inventory::AddPod(const PodSandboxId& id) {
  InventoryPodPtr pod = See(id, ++count_);
  NoteGrowth();
  return pod;
}

InventoryContainerPtr Inventory::AddContainer(InventoryPodPtr pod, const ContainerId& id) {
  InventoryContainerPtr container = See(std::move(pod), id, ++count_);
  NoteGrowth();
  return container;
}

// A list removes objects whose removal was not noticed, which would pile up otherwise.
void Inventory::NoteGrowth() {
  if (pods_.size() + containers_.size() > most_ && !asking_) Refresh();
}

uint64_t Inventory::BeginQuestion() {
  open_.insert(++count_);
  return count_;
}

void Inventory::EndQuestion(uint64_t begin) {
  open_.erase(open_.find(begin));
  if (open_.empty()) return removed_.clear();
  std::erase_if(removed_, [this](const auto& entry) { return entry.second < *open_.begin(); });
}

void Inventory::NoteRemoval(std::string_view id) {
  if (open_.empty() || id.size() > kLongestId) return;
  ++count_;
  if (removed_.size() < kMostRemovals) {
    removed_.insert_or_assign(std::string(id), count_);
  } else {
    not_noted_ = count_;
  }
}

bool Inventory::IsRemovedSince(std::string_view id, uint64_t begin) const {
  const auto removed = removed_.find(id);
  return removed != removed_.end() && removed->second > begin;
}

Status Inventory::CheckRemovalsSince(uint64_t begin) const {
  if (not_noted_ > begin) return Unavailable("too much was removed while the runtime was asked");
  return OkStatus();
}

Status Inventory::CheckKeptSince(std::string_view id, uint64_t begin) const {
  if (IsRemovedSince(id, begin)) return NotFound("{} was removed", id);
  return CheckRemovalsSince(begin);
}

void Inventory::Remove(const PodSandboxId& id) {
  NoteRemoval(id.value());
  const auto found = pods_.find(id.value());
  if (found == pods_.end()) return;
  const InventoryPodPtr pod = found->second;
  pods_.erase(found);
  std::erase_if(containers_, [this, &pod](const auto& entry) {
    if (entry.second->pod != pod) return false;
    NoteRemoval(entry.first);
    return true;
  });
  for (InventoryView* const view : views_)
    view->OnGone(*pod);
}

void Inventory::Remove(const ContainerId& id) {
  NoteRemoval(id.value());
  const auto found = containers_.find(id.value());
  if (found == containers_.end()) return;
  const InventoryContainerPtr container = found->second;
  containers_.erase(found);
  for (InventoryView* const view : views_)
    view->OnGone(*container);
}

void Inventory::TakeOutcome(const Request& request, const Outcome& outcome) {
  // Each stage reports the same outcome, so one list is enough for all of them.
  if (outcome.unclear()) return RefreshSoon();
  const Operation operation = request.operation();
  const bool removes =
      operation == Operation::kRemoveContainer || operation == Operation::kRemovePodSandbox;
  if (!outcome.gone() && !(removes && outcome.ok())) return;
  if (operation == Operation::kStopPodSandbox || operation == Operation::kRemovePodSandbox) {
    const InventoryPodPtr pod = FindPod(request.pod_id.value());
    Remove(pod == nullptr ? request.pod_id : pod->id);
  } else if (removes || operation == Operation::kStopContainer ||
             operation == Operation::kContainerStatus) {
    const InventoryContainerPtr container = FindContainer(request.container_id.value());
    Remove(container == nullptr ? request.container_id : container->id);
  }
}

void Inventory::OnEvent(const ContainerEvent& event) {
  const InventoryContainerPtr container = FindContainer(event.id);
  if (container != nullptr) {
    for (InventoryView* const view : views_) {
      if (event.kind == ContainerEvent::Kind::kStarted) view->OnStarted(*container);
      if (event.kind == ContainerEvent::Kind::kStopped) view->OnStopped(*container);
    }
  }
  if (event.kind != ContainerEvent::Kind::kDeleted) return;
  Remove(ContainerId(event.id));
  Remove(PodSandboxId(event.id));
}

void Inventory::SetValues(const ContainerId& id, const ResourceValues& values) {
  if (views_.empty()) return;
  const auto known = containers_.find(id.value());
  if (known == containers_.end()) {
    // The list under way may contain the container with older values, so the new ones are kept
    // until then.
    if (asking_) Merge(updated_[std::string(id.value())], AsResources(values));
    return;
  }
  for (InventoryView* const view : views_)
    view->OnValues(*known->second, AsResources(values));
}

InventoryPodPtr Inventory::FindPod(std::string_view id) const {
  return OnlyOneThatBeginsWith(pods_, id);
}

InventoryContainerPtr Inventory::FindContainer(std::string_view id) const {
  return OnlyOneThatBeginsWith(containers_, id);
}

void Inventory::Refresh() {
  if (views_.empty()) return;
  if (asking_) {
    again_ = true;
  } else if (retry_ == nullptr) {
    Ask();
  }
}

void Inventory::AfterRefresh(std::function<void(const Status&)> done) {
  waiting_.push_back(std::move(done));
  RefreshSoon();
}

void Inventory::WhenReady(std::function<void()> done) {
  if (ready_) return done();
  // If the list fails, WhenReady waits for another one.
  (asking_ ? served_ : waiting_).emplace_back([this, done = std::move(done)](const Status&) {
    WhenReady(done);
  });
  if (!asking_) Refresh();
}

void Inventory::RefreshSoon() {
  if (asking_ || views_.empty()) return Refresh();
  if (retry_ == nullptr) soon_ = clock_.After(std::chrono::milliseconds(0), [this] { Refresh(); });
}

void Inventory::BeginList() {
  retry_.reset();
  soon_.reset();
  asking_ = true;
  again_ = false;
  served_ = std::exchange(waiting_, {});
  begin_ = BeginQuestion();
}

RuntimeAccess::Done<RuntimeAccess::Everything> Inventory::TakeOthersList() {
  if (asking_ || views_.empty()) return nullptr;
  BeginList();
  // Runs when the last copy of the returned function is gone. If it was never called, the list
  // counts as failed.
  const auto end = [this, begin = begin_](void*) {
    if (!asking_ || begin_ != begin) return;
    soon_ = clock_.After(std::chrono::milliseconds(0),
                         [this] { Take(Unavailable("the list was given up")); });
  };
  const std::shared_ptr<void> used(nullptr, lifetime_.Guard(end));
  return lifetime_.Guard(
      [this, used](const StatusOr<RuntimeAccess::Everything>& everything) { Take(everything); });
}

void Inventory::Ask() {
  BeginList();
  runtime_.InspectAll(lifetime_.Guard(
      [this](const StatusOr<RuntimeAccess::Everything>& everything) { Take(everything); }));
}

void Inventory::Take(const StatusOr<RuntimeAccess::Everything>& everything) {
  const Status status = everything.ok() ? CheckRemovalsSince(begin_) : everything.status();
  if (status.ok()) {
    TakeList(*everything);
    most_ = 2 * (pods_.size() + containers_.size()) + kLeastGrowth;
    ready_ = !views_.empty();
  } else {
    log_.Debug("the runtime's containers are not known yet: {}", Describe(status));
    if (!views_.empty()) retry_ = clock_.After(kRetry, [this] { Ask(); });
  }
  asking_ = false;
  EndQuestion(begin_);
  updated_.clear();
  const std::weak_ptr<void> alive = lifetime_.token();
  for (const auto& done : std::exchange(served_, {})) {
    done(status);
    if (alive.expired()) return;
  }
  if (again_ && !asking_ && retry_ == nullptr) Ask();
}

void Inventory::TakeList(const RuntimeAccess::Everything& everything) {
  asked_at_ = begin_;
  for (const SandboxFacts& facts : everything.sandboxes)
    if (!IsRemovedSince(facts.pod.id.value(), begin_)) Learn(facts, ++count_);
  for (const ContainerFacts& facts : everything.containers) {
    const RuntimeContainer& listed = facts.container;
    const auto pod = pods_.find(listed.pod_id.value());
    if (pod == pods_.end() || IsRemovedSince(listed.id.value(), begin_)) continue;
    const InventoryContainerPtr container = Learn(pod->second, facts, ++count_);
    const auto updated = updated_.find(listed.id.value());
    if (updated == updated_.end()) continue;
    for (InventoryView* const view : views_)
      view->OnValues(*container, updated->second);
  }
  for (const std::string& id : everything.unlisted) {
    if (const auto pod = pods_.find(id); pod != pods_.end()) pod->second->seen = ++count_;
    if (const auto known = containers_.find(id); known != containers_.end()) {
      known->second->seen = ++count_;
    }
  }
  DropMissing();
}

// Removes objects that neither the list nor anything since its begin has shown.
void Inventory::DropMissing() {
  std::vector<ContainerId> containers;
  for (const auto& [id, container] : containers_)
    if (container->seen <= begin_) containers.push_back(container->id);
  for (const ContainerId& id : containers)
    Remove(id);
  std::vector<PodSandboxId> pods;
  for (const auto& [id, pod] : pods_)
    if (pod->seen <= begin_) pods.push_back(pod->id);
  for (const PodSandboxId& id : pods)
    Remove(id);
}

InventoryPodPtr Inventory::Learn(const SandboxFacts& facts, uint64_t when) {
  InventoryPodPtr pod = See(facts.pod.id, when);
  for (InventoryView* const view : views_)
    view->OnFacts(*pod, facts);
  return pod;
}

InventoryContainerPtr Inventory::Learn(InventoryPodPtr pod, const ContainerFacts& facts,
                                       uint64_t when) {
  InventoryContainerPtr container = See(std::move(pod), facts.container.id, when);
  for (InventoryView* const view : views_)
    view->OnFacts(*container, facts);
  return container;
}

bool Inventory::IsKnownToAll(const InventoryPod& pod) const {
  return std::ranges::all_of(
      views_, [&pod](const InventoryView* view) { return pod.data.at(view->slot_) != nullptr; });
}

void Inventory::LookUp(size_t slot, const PodSandboxId& id, Found<InventoryPod> done) {
  if (ready_ || !asking_) return AskFor(id, std::move(done));
  served_.emplace_back([this, slot, id, done = std::move(done)](const Status&) {
    InventoryPodPtr pod = FindPod(id.value());
    if (pod != nullptr && pod->data.at(slot) != nullptr) return done(std::move(pod));
    AskFor(id, done);
  });
}

void Inventory::LookUp(size_t slot, const ContainerId& id, Found<InventoryContainer> done) {
  if (ready_ || !asking_) return AskFor(id, std::move(done));
  served_.emplace_back([this, slot, id, done = std::move(done)](const Status&) {
    InventoryContainerPtr container = FindContainer(id.value());
    if (container != nullptr && container->data.at(slot) != nullptr) {
      return done(std::move(container));
    }
    AskFor(id, done);
  });
}

// An answer may be out of date: an object that was removed since the question is not added, and a
// list that began since then decides.
void Inventory::AskFor(const PodSandboxId& id, Found<InventoryPod> done) {
  const auto answered = [this, begin = BeginQuestion(),
                         done = std::move(done)](const StatusOr<SandboxFacts>& facts) {
    const Status status =
        facts.ok() ? CheckKeptSince(facts->pod.id.value(), begin) : facts.status();
    EndQuestion(begin);
    if (!status.ok()) return done(status);
    asked_at_ = begin;
    done(Learn(*facts, begin));
  };
  runtime_.InspectSandbox(id, lifetime_.Guard(answered));
}

void Inventory::AskFor(const ContainerId& id, Found<InventoryContainer> done) {
  const uint64_t begin = BeginQuestion();
  const auto end = [this, begin, done = std::move(done)](const StatusOr<InventoryPodPtr>& pod,
                                                         const ContainerFacts& facts) {
    const RuntimeContainer& container = facts.container;
    Status status = pod.status();
    if (status.ok()) status = CheckKeptSince(container.id.value(), begin);
    if (status.ok()) status = CheckKeptSince(container.pod_id.value(), begin);
    EndQuestion(begin);
    if (!status.ok()) return done(status);
    asked_at_ = begin;
    done(Learn(*pod, facts, begin));
  };
  const auto answered = [this, end](const StatusOr<ContainerFacts>& facts) {
    if (!facts.ok()) return end(facts.status(), {});
    const auto pod = pods_.find(facts->container.pod_id.value());
    if (pod != pods_.end() && IsKnownToAll(*pod->second)) return end(pod->second, *facts);
    AskFor(facts->container.pod_id,
           [end, facts = *facts](const StatusOr<InventoryPodPtr>& asked) { end(asked, facts); });
  };
  runtime_.InspectContainer(id, lifetime_.Guard(answered));
}

}  // namespace resmgr
