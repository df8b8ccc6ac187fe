// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/host_events.h"

#include <memory>
#include <utility>

#include "pkg/nri/host/merge/update_merge.h"

namespace resmgr::nri {

namespace {

using Step = std::function<void(HostEvents::Done)>;

// Runs one step after the other, then `done`. The steps' results are ignored, since the events have
// already happened.
void InSequence(std::shared_ptr<std::vector<Step>> steps, size_t next, HostEvents::Done done) {
  if (next == steps->size()) return done(OkStatus());
  const Step& step = (*steps)[next];
  step([steps = std::move(steps), next, done = std::move(done)](const Status&) mutable {
    InSequence(std::move(steps), next + 1, std::move(done));
  });
}

void InSequence(std::vector<Step> steps, HostEvents::Done done) {
  InSequence(std::make_shared<std::vector<Step>>(std::move(steps)), 0, std::move(done));
}

}  // namespace

bool WantsRealIds(const HostedPlugin& plugin) {
  return plugin.settings().real_ids || !plugin.port->Wants(api::EVENT_CREATE_CONTAINER);
}

void HostEvents::Tell(api::Event event, const HostPodPtr& pod, const HostContainerPtr& container,
                      const Budget& budget, Done done) {
  Ask(Dispatcher::Kind::kNotice, event, pod, container, budget, std::move(done));
}

void HostEvents::Ask(Dispatcher::Kind kind, api::Event event, const HostPodPtr& pod,
                     const HostContainerPtr& container, const Budget& budget, Done done) {
  HostedPlugins plugins = dispatcher_.Wanting(event);
  if (plugins.empty()) return done(OkStatus());
  const auto ask = [event, pod, container](HostedPlugin& plugin, std::chrono::milliseconds timeout,
                                           Dispatcher::Answered answered) {
    api::StateChangeEvent message;
    message.set_event(event);
    *message.mutable_pod() = *pod->message;
    if (container != nullptr) {
      *message.mutable_container() = ViewOf(*container, WantsRealIds(plugin));
    }
    plugin.port->Notify(message, timeout, std::move(answered));
  };
  dispatcher_.InTurn(kind, std::move(plugins), budget, ask, std::move(done));
}

void HostEvents::Stop(const HostContainerPtr& container, const Budget& budget, Done done) {
  if (std::exchange(container->stop_told, true) || !container->told) return done(OkStatus());
  HostedPlugins plugins = dispatcher_.Wanting(api::EVENT_STOP_CONTAINER);
  if (plugins.empty()) return done(OkStatus());
  const auto merge = std::make_shared<UpdateMerge>();
  const auto ask = [this, merge, container](HostedPlugin& plugin, std::chrono::milliseconds timeout,
                                            Dispatcher::Answered answered) {
    api::StopContainerRequest message;
    *message.mutable_pod() = *container->pod->message;
    *message.mutable_container() = ViewOf(*container, WantsRealIds(plugin));
    plugin.port->Ask<api::StopContainerResponse>(
        api::EVENT_STOP_CONTAINER, message.SerializeAsString(), timeout,
        [this, merge, name = plugin.name,
         answered = std::move(answered)](StatusOr<api::StopContainerResponse> answer) {
          if (!answer.ok()) return answered(answer.status());
          updates_.Normalize(*answer->mutable_update());
          answered(merge->Add(name, answer->update()));
        });
  };
  dispatcher_.InTurn(Dispatcher::Kind::kNotice, std::move(plugins), budget, ask,
                     [this, merge, done = std::move(done)](const Status&) {
                       updates_.Apply(merge->updates(),
                                      [done](const PluginUpdates::List&) { done(OkStatus()); });
                     });
}

void HostEvents::Remove(const HostContainerPtr& container, const Budget& budget, Done done) {
  if (std::exchange(container->remove_told, true)) return done(OkStatus());
  // Counts as stopped now, so that a plugin that connects meanwhile is not shown the container: it
  // might not hear of the removal.
  container->SetState(api::CONTAINER_STOPPED);
  std::vector<Step> steps;
  steps.emplace_back(
      [this, container, budget](Done next) { Stop(container, budget, std::move(next)); });
  if (container->told) {
    steps.emplace_back([this, container, budget](Done next) {
      // The pid is cleared, since another process may have it now.
      container->message.EditLater([](api::Container& message) { message.clear_pid(); });
      Tell(api::EVENT_REMOVE_CONTAINER, container->pod, container, budget, std::move(next));
    });
  }
  InSequence(std::move(steps), [this, container, done = std::move(done)](const Status& status) {
    view_.Remove(*container);
    done(status);
  });
}

void HostEvents::StopPod(const HostPodPtr& pod, const Budget& budget, Done done) {
  pod->ready = false;
  if (std::exchange(pod->stop_told, true)) return done(OkStatus());
  std::vector<Step> steps;
  for (const HostContainerPtr& container : view_.ContainersOf(*pod)) {
    if (container->creating()) continue;
    steps.emplace_back([this, container, budget](Done next) {
      container->SetState(api::CONTAINER_STOPPED);
      Stop(container, budget, std::move(next));
    });
  }
  steps.emplace_back([this, pod, budget](Done next) {
    Tell(api::EVENT_STOP_POD_SANDBOX, pod, nullptr, budget, std::move(next));
  });
  InSequence(std::move(steps), std::move(done));
}

void HostEvents::RemovePod(const HostPodPtr& pod, const Budget& budget, Done done) {
  if (std::exchange(pod->remove_told, true)) return done(OkStatus());
  pod->message.Edit();  // it is not shown any more
  std::vector<Step> steps;
  steps.emplace_back([this, pod, budget](Done next) { StopPod(pod, budget, std::move(next)); });
  for (const HostContainerPtr& container : view_.ContainersOf(*pod)) {
    if (container->creating()) continue;
    steps.emplace_back(
        [this, container, budget](Done next) { Remove(container, budget, std::move(next)); });
  }
  steps.emplace_back([this, pod, budget](Done next) {
    Tell(api::EVENT_REMOVE_POD_SANDBOX, pod, nullptr, budget, std::move(next));
  });
  InSequence(std::move(steps), [this, pod, done = std::move(done)](const Status& status) {
    view_.RemovePod(*pod);
    done(status);
  });
}

}  // namespace resmgr::nri
