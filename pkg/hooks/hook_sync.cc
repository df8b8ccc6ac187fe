// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_sync.h"

#include <utility>

namespace resmgr::hooks {

HookSync::HookSync(resmgr::Clock& clock, RuntimeAccess& runtime, HookStore& store)
    : clock_(clock), runtime_(runtime), store_(store), log_(GetLogger("hooks")) {}

void HookSync::Refresh() {
  if (asking_) {
    again_ = true;
  } else if (retry_ == nullptr) {
    Ask();
  }
}

void HookSync::NoteGrowth() {
  if (store_.size() <= most_ || asking_) return;
  Refresh();
}

void HookSync::Ask() {
  retry_.reset();
  asking_ = true;
  again_ = false;
  store_.BeginList();
  runtime_.InspectAll(lifetime_.Guard(
      [this](const StatusOr<RuntimeAccess::Everything>& everything) { Take(everything); }));
}

void HookSync::Take(const StatusOr<RuntimeAccess::Everything>& everything) {
  asking_ = false;
  if (everything.ok()) {
    store_.TakeList(*everything);
    most_ = 2 * store_.size() + kLeastGrowth;
    ready_ = true;
  } else {
    store_.GiveUpList();
    log_.Debug("the runtime's containers are not known yet: {}", Describe(everything.status()));
    retry_ = clock_.After(kRetry, [this] { Ask(); });
  }
  const std::weak_ptr<void> alive = lifetime_.token();
  for (const auto& then : std::exchange(waiting_, {})) {
    then();
    if (alive.expired()) return;
  }
  if (again_ && !asking_ && retry_ == nullptr) Ask();
}

bool HookSync::Wait(std::function<void()> then) {
  if (ready_ || !asking_) return false;
  waiting_.push_back(std::move(then));
  return true;
}

void HookSync::FindPod(const PodSandboxId& id, std::function<void(StatusOr<HookPodPtr>)> done) {
  const auto then = [this, id, done] {
    if (HookPodPtr pod = store_.FindPod(id.value())) return done(std::move(pod));
    AskForPod(id, done);
  };
  if (!Wait(then)) AskForPod(id, std::move(done));
}

void HookSync::AskForPod(const PodSandboxId& id, std::function<void(StatusOr<HookPodPtr>)> done) {
  runtime_.InspectSandbox(
      id, lifetime_.Guard([this, done = std::move(done)](const StatusOr<SandboxFacts>& facts) {
        if (!facts.ok()) return done(facts.status());
        done(store_.Learn(*facts));
      }));
}

void HookSync::FindContainer(const ContainerId& id,
                             std::function<void(StatusOr<HookContainerPtr>)> done) {
  const auto then = [this, id, done] {
    if (HookContainerPtr container = store_.FindContainer(id.value())) {
      return done(std::move(container));
    }
    AskForContainer(id, done);
  };
  if (!Wait(then)) AskForContainer(id, std::move(done));
}

void HookSync::AskForContainer(const ContainerId& id,
                               std::function<void(StatusOr<HookContainerPtr>)> done) {
  runtime_.InspectContainer(
      id, lifetime_.Guard([this, done = std::move(done)](const StatusOr<ContainerFacts>& facts) {
        if (!facts.ok()) return done(facts.status());
        const PodSandboxId pod_id = facts->container.pod_id;
        if (HookPodPtr pod = store_.FindPod(pod_id.value())) {
          return done(store_.Learn(std::move(pod), *facts));
        }
        AskForPod(pod_id, [this, done, container = *facts](StatusOr<HookPodPtr> pod) {
          if (!pod.ok()) return done(pod.status());
          done(store_.Learn(*std::move(pod), container));
        });
      }));
}

}  // namespace resmgr::hooks
