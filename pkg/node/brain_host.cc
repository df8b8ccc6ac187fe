// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/brain_host.h"

#include <utility>

#include "policies/null/null_policy.h"

namespace resmgr {

BrainHost::Brain::Brain(const Options& options, std::unique_ptr<Policy> policy)
    : link(options.door.MakeLink()),
      manager(options.loop, options.machine, std::move(policy), link->runtime(), options.state,
              options.manager),
      stage(
          manager, options.hints, [this] { return link->EnsureConnected(); }, options.devices) {
  if (options.door.ShowsClaimsByVariables()) stage.TakeClaimsFromVariables();
}

BrainHost::BrainHost(Options options) : options_(std::move(options)) {
  options_.manager.overrides_warned = &overrides_warned_;
  observers_.Add(history_);
  if (options_.state != nullptr) observers_.Add(refusal_notes_.emplace(*options_.state, history_));
  if (options_.manager.observer != nullptr) observers_.Add(*options_.manager.observer);
  options_.manager.observer = &observers_;
}

BrainHost::~BrainHost() {
  options_.pipeline.SetPolicyStage(nullptr);
}

void BrainHost::Start(std::unique_ptr<Policy> policy) {
  if (policy != nullptr) {
    MakeBrain(std::move(policy));
  } else if (options_.state != nullptr && options_.state->size() > 0) {
    auto brain = std::make_unique<Brain>(options_, std::make_unique<NullPolicy>());
    Connect(*brain);
    AddRetired(std::move(brain));
  }
}

void BrainHost::MakeBrain(std::unique_ptr<Policy> policy) {
  for (const std::unique_ptr<Brain>& former : retired_)
    Stop(*former);
  brain_ = std::make_unique<Brain>(options_, std::move(policy));
  Brain& brain = *brain_;
  if (!offline_.cpus.empty()) TellOffline(brain);
  // The brain is active before it connects, so no request after the first list escapes it.
  SetActive(&brain);
  Connect(brain);
}

void BrainHost::SetActive(Brain* brain) {
  options_.pipeline.SetPolicyStage(brain == nullptr ? nullptr : &brain->stage);
  options_.door.SetActive(brain == nullptr ? nullptr : brain->link.get());
}

void BrainHost::Connect(Brain& brain) {
  const auto tell = [&brain](void (ResourceManager::*event)()) {
    return [&brain, event] {
      if (!brain.stopped) (brain.manager.*event)();
    };
  };
  brain.link->Connect({.connected = tell(&ResourceManager::RuntimeConnected),
                       .joined = tell(&ResourceManager::RuntimeJoined),
                       .disconnected = tell(&ResourceManager::RuntimeDisconnected),
                       .happened =
                           [this, &brain](const ContainerEvent& event) {
                             if (brain.stopped) return;
                             brain.manager.OnContainerEvent(event);
                             const bool updated = event.kind == ContainerEvent::Kind::kUpdated;
                             if (updated && options_.updated_outside) options_.updated_outside();
                           },
                       .changed =
                           [&brain] {
                             if (!brain.stopped) brain.manager.synchronizer().ResyncSoon();
                           },
                       .doubtful =
                           [&brain](const ContainerId& id) {
                             if (!brain.stopped) brain.manager.SendAgain(id);
                           }});
}

void BrainHost::SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) {
  if (brain_ == nullptr && policy == nullptr) return done(OkStatus());
  if (policy == nullptr) {
    brain_->manager.policy_changes().Set(std::make_unique<NullPolicy>(),
                                         [this, done = std::move(done)](const Status& status) {
                                           if (status.ok()) Retire();
                                           done(status);
                                         });
    return;
  }
  if (brain_ != nullptr)
    return brain_->manager.policy_changes().Set(std::move(policy), std::move(done));
  // The new brain first adopts all containers in place; then its policy is set, as a whole or not
  // at all. Without a runtime there are no containers to adopt.
  MakeBrain(std::make_unique<NullPolicy>());
  brain_->manager.synchronizer().WhenReady(
      [this, next = std::make_shared<std::unique_ptr<Policy>>(std::move(policy)),
       done = std::move(done)](const Status&) {
        brain_->manager.policy_changes().Set(std::move(*next), [this, done](const Status& status) {
          if (!status.ok()) Retire();
          done(status);
        });
      });
}

// Sets the offline CPUs of a brain that will release all containers or get a policy.
void BrainHost::TellOffline(Brain& brain) const {
  brain.manager.policy_changes().SetOffline(offline_, std::make_unique<NullPolicy>()).IgnoreError();
}

Status BrainHost::SetOffline(std::unique_ptr<Policy> policy, const OfflineChange& offline) {
  if (brain_ != nullptr && policy != nullptr)
    RESMGR_RETURN_IF_ERROR(brain_->manager.policy_changes().SetOffline(offline, std::move(policy)));
  offline_ = offline;
  for (const auto* const brains : {&retiring_, &retired_}) {
    for (const std::unique_ptr<Brain>& brain : *brains)
      TellOffline(*brain);
  }
  return OkStatus();
}

StatusOr<std::vector<ResourceManager::Move>> BrainHost::PreviewPolicy(const Policy* policy) const {
  if (brain_ == nullptr) return std::vector<ResourceManager::Move>();
  if (policy != nullptr) return brain_->manager.policy_changes().Preview(*policy);
  const NullPolicy null;
  return brain_->manager.policy_changes().Preview(null);
}

void BrainHost::SetStartFailurePolicy(FailurePolicy policy) {
  options_.manager.start_failure = policy;
  if (brain_ != nullptr) brain_->manager.SetStartFailurePolicy(policy);
}

void BrainHost::SetRefusedUpdates(RefusedUpdates choice) {
  options_.manager.refused_updates = choice;
  if (brain_ != nullptr) brain_->manager.SetRefusedUpdates(choice);
  for (const auto* const brains : {&retiring_, &retired_}) {
    for (const std::unique_ptr<Brain>& brain : *brains)
      brain->manager.SetRefusedUpdates(choice);
  }
}

const ResourceManager* BrainHost::updating_manager() const {
  if (brain_ != nullptr) return &brain_->manager;
  for (const auto* const brains : {&retiring_, &retired_}) {
    for (const std::unique_ptr<Brain>& brain : *brains)
      if (!IsDone(*brain)) return &brain->manager;
  }
  return nullptr;
}

std::string BrainHost::RuntimeState() const {
  if (brain_ == nullptr) return "not used";
  const Status connected = brain_->link->EnsureConnected();
  return connected.ok() ? "connected" : std::string(Message(connected));
}

void BrainHost::Retire() {
  SetActive(nullptr);
  // Destroyed later, since one of its own calls may be running.
  retiring_.push_back(std::move(brain_));
  options_.loop.Post([this] {
    for (std::unique_ptr<Brain>& brain : std::exchange(retiring_, {}))
      AddRetired(std::move(brain));
  });
}

void BrainHost::AddRetired(std::unique_ptr<Brain> brain) {
  brain->link->Retire();
  if (brain_ != nullptr) Stop(*brain);
  retired_.push_back(std::move(brain));
  drain_check_ = options_.loop.Every(options_.drain_check, [this] { DestroyDrained(); });
}

void BrainHost::Stop(Brain& brain) {
  if (std::exchange(brain.stopped, true)) return;
  brain.manager.RuntimeDisconnected();
}

bool BrainHost::IsDone(const Brain& brain) {
  return brain.stopped || brain.manager.policy_changes().AllReleased();
}

void BrainHost::DestroyDrained() {
  std::erase_if(retired_,
                [](const auto& brain) { return brain->stage.calls() == 0 && IsDone(*brain); });
  if (!retired_.empty()) return;
  drain_check_.reset();
  // No container is bound any more, so the next daemon needs no notes.
  if (brain_ == nullptr && options_.state != nullptr) {
    options_.state->Retain([](std::string_view) { return false; });
    options_.state->Commit();
  }
}

}  // namespace resmgr
