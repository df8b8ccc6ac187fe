// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/nri_stage.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"
#include "pkg/nri/host/merge/update_merge.h"
#include "pkg/nri/host/stage/nri_calls.h"
#include "pkg/nri/host/view/object_views.h"

namespace resmgr::nri {

namespace {

// Whether the plugin has this name: "10-logger" or "logger".
bool IsCalled(const HostedPlugin& plugin, std::string_view name) {
  const std::string_view full = plugin.name;
  return full == name || (full.size() == name.size() + 3 && full.ends_with(name) && full[2] == '-');
}

// Whether the container still runs since its last known start: then a reported stop was an earlier
// one. An event may come after the reply to a restart.
bool RunsOn(const HostContainer& container, const ContainerFacts& facts) {
  return facts.container.state == ContainerState::kRunning && facts.pid != 0 &&
         container.message->state() == api::CONTAINER_RUNNING && facts.started_at != 0 &&
         facts.started_at == container.message->started_at();
}

HostPod& PodOf(HostPod& pod) {
  return pod;
}

HostPod& PodOf(HostContainer& container) {
  return *container.pod;
}

// Replaces containers' ids by those that the plugin knows.
void TranslateIds(const HostView& view, std::vector<api::ContainerUpdate>& updates) {
  for (api::ContainerUpdate& update : updates) {
    const HostContainerPtr container = view.Find(update.container_id());
    if (container != nullptr) update.set_container_id(std::string(container->id.value()));
  }
}

}  // namespace

NriStage::NriStage(Context context, NriStageOptions options)
    : Stage({.name = "nri",
             .rank = StageRank::kNriPlugins,
             .operations = OperationSet::All(),
             .details = kAllDetails}),
      context_(context),
      nri_options_(std::move(options)),
      log_(GetLogger("nri/host")),
      dispatcher_([this] {
        if (context_.metrics != nullptr) context_.metrics->CountIgnoredFailure("nri");
      }),
      view_(context.inventory, Ends()),
      updates_(context.runtime, view_, nri_options_.unsupported,
               {.placement_is_owned = [this] { return PlacementIsOwned(); },
                .dropped_placement = [this] { context_.pipeline.NoteDroppedPlacement(*this); },
                .left_out = [this](const HostContainer& container,
                                   const auto& lines) { NoteLeftOut(container, lines); },
                .set =
                    [this](const ContainerId& id, const ResourceValues& values, bool accepted) {
                      context_.pipeline.TellSetByStage(id, values, accepted);
                    }}),
      events_(dispatcher_, view_, updates_, nri_options_.budget),
      images_(context.runtime),
      files_(context.loop, {.profile_directory = nri_options_.profile_directory,
                            .find = nri_options_.find_files}),
      evict_limit_(/*burst=*/1, std::chrono::minutes(1)),
      warnings_limit_(/*burst=*/20, std::chrono::minutes(1)) {
  if (nri_options_.validator) validator_.emplace(*nri_options_.validator, nri_options_.required);
}

void NriStage::Start() {
  files_.RemoveLeft();
  view_.Attach();
}

void NriStage::Configure(NriStageOptions options) {
  options.start_before = nri_options_.start_before;
  options.profile_directory = std::move(nri_options_.profile_directory);
  nri_options_ = std::move(options);
  events_.SetBudget(nri_options_.budget);
  traits_.without_rdt = false;
  validator_.reset();
  if (nri_options_.validator) validator_.emplace(*nri_options_.validator, nri_options_.required);
}

void NriStage::SetTraits(const RuntimeTraits& traits, std::vector<HandlerFeatures> handlers) {
  traits_ = traits;
  handlers_ = std::move(handlers);
  updates_.SetTraits(traits);
}

void NriStage::NoteWithoutRdt() {
  if (std::exchange(traits_.without_rdt, true)) return;
  log_.Warn(
      "the runtime has refused a container for its RDT class, since RDT is disabled there: until "
      "it connects again or the configuration changes, classes that plugins want are left out");
}

void NriStage::NoteLeftOut(const HostContainer& container, const std::vector<std::string>& lines) {
  for (const std::string& warning : lines) {
    const auto suppressed = warnings_limit_.Pass(RateLimit::Clock::now());
    if (!suppressed) return;
    log_.Warn("container {} of pod {}: {}{}", Printable(container.message->name()),
              Printable(container.pod->message->name()), warning, NotLogged(*suppressed));
  }
}

void NriStage::End() {
  lifetime_.End();
}

std::unique_ptr<StageCall> NriStage::Begin(const Request& request) {
  return lifetime_.ended() ? nullptr : MakeNriCall(*this, request.operation());
}

SharedSyncMessages NriStage::Inventory(PluginPort& plugin) {
  dispatcher_.Add(plugin);
  return view_.All(WantsRealIds(*dispatcher_.Find(plugin)));
}

void NriStage::OnReady(PluginPort& plugin, std::vector<api::ContainerUpdate> updates) {
  api::UpdateContainersRequest request;
  request.mutable_update()->Add(std::make_move_iterator(updates.begin()),
                                std::make_move_iterator(updates.end()));
  OnUpdateContainers(plugin, request, [](const auto&) {});
}

void NriStage::OnUpdateContainers(PluginPort& plugin, const api::UpdateContainersRequest& request,
                                  Updated done) {
  const std::shared_ptr<HostedPlugin> hosted = dispatcher_.Find(plugin);
  if (lifetime_.ended() || hosted == nullptr) {
    return done({request.update().begin(), request.update().end()});
  }
  if (request.evict_size() > 0) {
    if (const auto suppressed = evict_limit_.Pass(RateLimit::Clock::now())) {
      log_.Warn("NRI plugin {} wants containers evicted, which NRI's hosts do not do{}",
                hosted->name, NotLogged(*suppressed));
    }
  }
  ContainerUpdateList updates = request.update();
  updates_.Normalize(updates);
  UpdateMerge merge;
  if (const Status merged = merge.Add(hosted->name, updates); !merged.ok()) {
    log_.Warn("NRI plugin {}: {}", hosted->name, Printable(Describe(merged)));
    return done({request.update().begin(), request.update().end()});
  }
  const bool real_ids = WantsRealIds(*hosted);
  updates_.Apply(merge.updates(),
                 [this, real_ids, done = std::move(done)](const PluginUpdates::List& failed) {
                   std::vector<api::ContainerUpdate> told = failed;
                   if (real_ids) TranslateIds(view_, told);
                   done(std::move(told));
                 });
}

// PluginHost has logged the reason.
void NriStage::OnLost(PluginPort& plugin, const Status& /*why*/) {
  dispatcher_.Remove(plugin);
}

Status NriStage::CheckRequired(const HostPod* pod, std::string_view container) const {
  const auto missing = std::ranges::find_if(nri_options_.required, [this](const std::string& name) {
    return std::ranges::none_of(dispatcher_.plugins(),
                                [&name](const auto& plugin) { return IsCalled(*plugin, name); });
  });
  if (missing == nri_options_.required.end()) return OkStatus();
  if (pod != nullptr && validator_) {
    RESMGR_ASSIGN_OR_RETURN(const bool tolerates,
                            validator_->ToleratesMissing(pod->message->annotations(), container));
    if (tolerates) return OkStatus();
  }
  return Unavailable("the required NRI plugin {} is not connected", *missing);
}

Dispatcher::Kind NriStage::RequestKind(const HostPod& pod, std::string_view container) const {
  using enum Dispatcher::Kind;
  if (!validator_) return kRequest;
  const auto tolerates = validator_->ToleratesMissing(pod.message->annotations(), container);
  return tolerates.ok() && *tolerates ? kTolerant : kRequest;
}

void NriStage::InTurn(HostPod& pod, std::function<void(Turns::Turn)> begin) {
  pod.turns.Take(WhileHere<Turns::Turn>(std::move(begin)));
}

void NriStage::TellStop(const HostContainerPtr& container, const Budget& budget,
                        std::function<void()> done) {
  InTurn(*container->pod, [this, container, budget, done = std::move(done)](Turns::Turn turn) {
    if (container->stop_told || container->creating()) return done();
    runtime().InspectContainer(
        container->id,
        WhileHere<StatusOr<ContainerFacts>>([this, container, budget, turn = std::move(turn),
                                             done](const StatusOr<ContainerFacts>& facts) {
          if (facts.ok() && RunsOn(*container, *facts)) return done();
          // If it runs already by a later start, the facts belong to that start.
          if (facts.ok() && (facts->pid == 0 || !container->RunsAnew(*facts))) {
            AddFacts(*facts, container->message.Edit());
          }
          container->SetState(api::CONTAINER_STOPPED);
          events_.Stop(container, budget, [turn, done](const Status&) { done(); });
        }));
  });
}

void NriStage::LookAtStart(const HostContainerPtr& container) {
  if (!container->starting.expired()) return;
  InTurn(*container->pod, [this, container](const Turns::Turn& turn) {
    if (!container->HasEnded() || container->remove_told) return;
    const auto inspected = [this, container, turn](const StatusOr<ContainerFacts>& facts) {
      if (facts.ok()) return TellRestart(container, *facts, turn);
      view_.inventory().RefreshSoon();
    };
    runtime().InspectContainer(container->id, WhileHere<StatusOr<ContainerFacts>>(inspected));
  });
}

void NriStage::TellRestart(const HostContainerPtr& container, const ContainerFacts& facts,
                           const Turns::Turn& turn) {
  if (!container->starting.expired() || container->remove_told) return;
  if (!container->RunsAnew(facts)) return;
  const Budget budget = NewBudget();
  if (!container->HasEnded()) {
    container->SetState(api::CONTAINER_STOPPED);
    return events_.Stop(container, budget, [this, container, facts, turn](const Status&) {
      TellRestart(container, facts, turn);
    });
  }
  AddFacts(facts, container->message.Edit());
  container->stop_told = false;
  container->told = true;
  events_.Tell(api::EVENT_START_CONTAINER, container->pod, container, budget,
               [this, container, budget, turn](const Status&) {
                 events_.Tell(api::EVENT_POST_START_CONTAINER, container->pod, container, budget,
                              [turn](const Status&) {});
               });
}

HostView::Ends NriStage::Ends() {
  const auto in_turn = [this](auto end) {
    return [this, end](const auto& object) {
      InTurn(PodOf(*object), [this, object, end](const Turns::Turn& turn) {
        (events_.*end)(object, NewBudget(), [turn](const Status&) {});
      });
    };
  };
  return {.pod_stopped = in_turn(&HostEvents::StopPod),
          .pod_gone = in_turn(&HostEvents::RemovePod),
          .exited = in_turn(&HostEvents::Stop),
          .stopped = [this](const auto& container) { TellStop(container, NewBudget(), [] {}); },
          .gone = in_turn(&HostEvents::Remove),
          .started = [this](const auto& container) { LookAtStart(container); },
          .runs_again =
              [this](const auto& container, const ContainerFacts& facts) {
                InTurn(*container->pod, [this, container, facts](const Turns::Turn& turn) {
                  TellRestart(container, facts, turn);
                });
              }};
}

}  // namespace resmgr::nri
