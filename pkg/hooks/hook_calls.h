// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <google/protobuf/arena.h>

#include "pkg/hooks/hook_merge.h"
#include "pkg/hooks/hook_round.h"
#include "pkg/hooks/hook_stage.h"
#include "pkg/model/operation.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// HookStage's calls, by their operations. Only for HookStage.

// nullptr: the operation has no hook.
std::unique_ptr<StageCall> MakeHookCall(HookStage& stage, Operation operation);

// Handles RunPodSandbox, StopPodSandbox, RemovePodSandbox, UpdatePodSandboxResources.
std::unique_ptr<StageCall> MakePodCall(HookStage& stage, Operation operation);
std::unique_ptr<StageCall> MakeCreateCall(HookStage& stage);
// Handles StartContainer, StopContainer, RemoveContainer, UpdateContainerResources.
std::unique_ptr<StageCall> MakeContainerCall(HookStage& stage, Operation operation);

// "hook PreCreateContainer of koordlet.json: ...", with the code of `why`.
Status FailureOf(HookPoint point, const HookServerPort& server, const Status& why);
Status TooLate(const HookStage& stage);
// The changes of the request.
Adjustment AdjustmentOf(HookChanges changes);

// The common part of calls that ask servers before the runtime: the servers, and the remaining
// time. No callback runs after its end.
class AskingCall : public StageCall {
 public:
  AskingCall(HookStage& stage, HookPoint point) : StageCall(stage), stage_(stage), point_(point) {}

  // Calls Consider once the servers are known.
  void Before(Request& request, const Adjustment& so_far) final;

 protected:
  // Has the arguments of Before.
  virtual void Consider(Request& request, const Adjustment& so_far) = 0;

  HookStage& hooks() const { return stage_; }
  HookPoint point() const { return point_; }
  // Takes the servers configured now, and starts their time limit. False: there are none.
  bool FindServers();
  // Asks the servers; `done` of the steps gets the result.
  void Ask(HookRound::Steps steps);
  // Ends the call without asking, since the request cannot be built: refuses it if a server's
  // policy is Fail.
  void PassUnasked(const Status& why);
  // Wraps a callback, so that it does nothing once this call has ended or its time is over.
  template <typename Result>
  std::function<void(StatusOr<Result>)> InTime(std::function<void(StatusOr<Result>)> done) {
    return lifetime_.Guard(std::move(done));
  }
  PlacementOwner placement_owner() const {
    return PlacementIsOwned() ? PlacementOwner::kPolicy : PlacementOwner::kServers;
  }
  void LogConflicts(const HookOwners& owners) const;
  // The call is decided: pending answers are dropped.
  void StopWaiting();

 private:
  void Expire();

  HookStage& stage_;
  const HookPoint point_;
  HookStage::Servers servers_;
  std::optional<HookRound> round_;
  EventLoop::HandlePtr budget_;
  Lifetime lifetime_;
};

// The steps of a round that adds answers of this type to `merge`, which outlives the round.
template <typename Answer, typename Merge>
HookRound::Steps StepsOf(Merge& merge, std::function<void(const Status& refusal)> done) {
  return {.request = [&merge] { return merge.Encoded(); },
          .take = [&merge](const HookServerSettings& server, const std::string& bytes) -> Status {
            // An arena frees the answer with its dozens of variables at once.
            google::protobuf::Arena arena;
            Answer& answer = *google::protobuf::Arena::CreateMessage<Answer>(&arena);
            std::optional<std::string> rest;
            if constexpr (!std::is_same_v<Merge, PodHookMerge>) {
              rest = merge.WithoutRepeatedEnvironment(bytes);
            }
            if (!answer.ParseFromString(rest ? *rest : bytes)) {
              return Internal("its answer is malformed");
            }
            if constexpr (std::is_same_v<Merge, PodHookMerge>) {
              return merge.Add(server.file, answer);
            } else {
              return merge.Add(server.file, server.style, answer);
            }
          },
          .done = std::move(done)};
}

}  // namespace resmgr::hooks
