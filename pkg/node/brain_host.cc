// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/brain_host.h"

#include <chrono>
#include <utility>

#include "policies/null/null_policy.h"

namespace resmgr {
namespace {

// How often it is looked whether the last calls of a former brain have ended.
constexpr std::chrono::seconds kDrainCheckPeriod{1};

}  // namespace

BrainHost::Brain::Brain(const Options& options, HintFinder& hints, std::unique_ptr<Policy> policy)
    : runtime(options.loop, options.flushes, options.runtime_socket),
      manager(options.loop, options.machine, std::move(policy), runtime, options.state,
              options.manager),
      interceptor(manager, hints, [this] { return runtime.EnsureConnected(); }) {}

BrainHost::BrainHost(Options options)
    : options_(std::move(options)), hints_(options_.loop, options_.hints) {
  options_.manager.overrides_warned = &overrides_warned_;
  options_.manager.observer = &history_;
}

void BrainHost::Serve(Relay& relay) {
  relay_ = &relay;
  relay.OnClientsListen([this](bool listen) {
    if (brain_ != nullptr) brain_->runtime.LeaveEventsToClient(listen);
  });
  relay.OnEvent([this](const ContainerEvent& event) {
    if (brain_ != nullptr) brain_->manager.OnContainerEvent(event);
  });
  if (brain_ != nullptr) relay_->SetInterceptor(&brain_->interceptor);
}

void BrainHost::Start(std::unique_ptr<Policy> policy) {
  if (policy != nullptr) {
    MakeBrain(std::move(policy));
  } else if (options_.state != nullptr && options_.state->size() > 0) {
    auto brain = std::make_unique<Brain>(options_, hints_, std::make_unique<NullPolicy>());
    Connect(*brain);
    AddRetired(std::move(brain));
  }
}

void BrainHost::MakeBrain(std::unique_ptr<Policy> policy) {
  for (const std::unique_ptr<Brain>& former : retired_)
    Stop(*former);
  brain_ = std::make_unique<Brain>(options_, hints_, std::move(policy));
  Brain& brain = *brain_;
  // First the calls, then the list: so nothing happens between the two that nobody sees.
  if (relay_ != nullptr) {
    relay_->SetInterceptor(&brain.interceptor);
    brain.runtime.LeaveEventsToClient(relay_->clients_listen());
  }
  Connect(brain);
}

void BrainHost::Connect(Brain& brain) {
  brain.runtime.Start({.connected =
                           [&brain] {
                             if (!brain.stopped) brain.manager.RuntimeConnected();
                           },
                       .disconnected =
                           [&brain] {
                             if (!brain.stopped) brain.manager.RuntimeDisconnected();
                           },
                       .happened =
                           [&brain](const ContainerEvent& event) {
                             if (!brain.stopped) brain.manager.OnContainerEvent(event);
                           }});
}

void BrainHost::SetPolicy(std::unique_ptr<Policy> policy, std::function<void(Status)> done) {
  if (brain_ == nullptr && policy == nullptr) {
    done(OkStatus());
    return;
  }
  if (policy == nullptr) {
    brain_->manager.SetPolicy(std::make_unique<NullPolicy>(),
                              [this, done = std::move(done)](const Status& status) {
                                if (status.ok()) Retire();
                                done(status);
                              });
    return;
  }
  if (brain_ != nullptr) {
    brain_->manager.SetPolicy(std::move(policy), std::move(done));
    return;
  }
  // Takes everybody over where they are, and then changes as from any other policy: whole or not at
  // all. Without a runtime there is nobody to take over.
  MakeBrain(std::make_unique<NullPolicy>());
  brain_->manager.WhenReady([this,
                             next = std::make_shared<std::unique_ptr<Policy>>(std::move(policy)),
                             done = std::move(done)](const Status&) {
    brain_->manager.SetPolicy(std::move(*next), [this, done](const Status& status) {
      if (!status.ok()) Retire();
      done(status);
    });
  });
}

StatusOr<std::vector<ResourceManager::Move>> BrainHost::PreviewPolicy(const Policy* policy) const {
  if (brain_ == nullptr) return std::vector<ResourceManager::Move>();
  if (policy != nullptr) return brain_->manager.PreviewPolicy(*policy);
  const NullPolicy null;
  return brain_->manager.PreviewPolicy(null);
}

void BrainHost::SetStartFailurePolicy(FailurePolicy policy) {
  options_.manager.start_failure = policy;
  if (brain_ != nullptr) brain_->manager.SetStartFailurePolicy(policy);
}

std::string BrainHost::RuntimeState() const {
  if (brain_ == nullptr) return "not used";
  const Status connected = brain_->runtime.EnsureConnected();
  return connected.ok() ? "connected" : std::string(Message(connected));
}

void BrainHost::Retire() {
  if (relay_ != nullptr) relay_->SetInterceptor(nullptr);
  // Not from within one of its own calls.
  options_.loop.Post([this, brain = std::make_shared<std::unique_ptr<Brain>>(std::move(brain_))] {
    AddRetired(std::move(*brain));
  });
}

void BrainHost::AddRetired(std::unique_ptr<Brain> brain) {
  // What it has to do, it learns from its lists.
  brain->runtime.LeaveEventsToClient(true);
  if (brain_ != nullptr) Stop(*brain);
  retired_.push_back(std::move(brain));
  drain_check_ = options_.loop.Every(kDrainCheckPeriod, [this] { DestroyDrained(); });
}

void BrainHost::Stop(Brain& brain) {
  if (std::exchange(brain.stopped, true)) return;
  brain.manager.RuntimeDisconnected();
}

void BrainHost::DestroyDrained() {
  std::erase_if(retired_, [](const auto& brain) {
    return brain->interceptor.idle() && (brain->stopped || brain->manager.AllReleased());
  });
  if (!retired_.empty()) return;
  drain_check_.reset();
  // Until here the notes tell a next daemon whom there is to let go.
  if (brain_ == nullptr && options_.state != nullptr) {
    options_.state->Retain([](std::string_view) { return false; });
    options_.state->Commit();
  }
}

}  // namespace resmgr
