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

// For HookStage alone: its part in calls, by their operation.

// nullptr: hook servers have nothing to do with it.
std::unique_ptr<StageCall> MakeHookCall(HookStage& stage, Operation operation);

// RunPodSandbox, StopPodSandbox, RemovePodSandbox, UpdatePodSandboxResources.
std::unique_ptr<StageCall> MakePodCall(HookStage& stage, Operation operation);
std::unique_ptr<StageCall> MakeCreateCall(HookStage& stage);
// StartContainer, StopContainer, RemoveContainer, UpdateContainerResources.
std::unique_ptr<StageCall> MakeContainerCall(HookStage& stage, Operation operation);

// "hook PreCreateContainer of koordlet.json: ...", with the code of `why`.
Status FailureOf(HookPoint point, const HookServerPort& server, const Status& why);
Status TooLate(const HookStage& stage);
// What the request is changed by.
Adjustment AdjustmentOf(HookChanges changes);

// What calls that ask something before the runtime does have in common: the servers, and the time
// that is left for them. Nothing runs after its end.
class AskingCall : public StageCall {
 public:
  AskingCall(HookStage& stage, HookPoint point) : StageCall(stage), stage_(stage), point_(point) {}

  // Consider, once it is known which servers there are.
  void Before(Request& request, const Adjustment& so_far) final;

 protected:
  // As Before.
  virtual void Consider(Request& request, const Adjustment& so_far) = 0;

  HookStage& hooks() const { return stage_; }
  HookPoint point() const { return point_; }
  // Takes those that are configured now, and counts their time. False: there is none.
  bool FindServers();
  // Asks them; `done` of the steps answers.
  void Ask(HookRound::Steps steps);
  // What the servers are to be told cannot be found out: refused, where one of them may not fail.
  void PassUnasked(const Status& why);
  // For answers of others: nothing once this has ended, or its time is over.
  template <typename Result>
  std::function<void(StatusOr<Result>)> InTime(std::function<void(StatusOr<Result>)> done) {
    return lifetime_.Guard(std::move(done));
  }
  PlacementOwner placement_owner() const {
    return PlacementIsOwned() ? PlacementOwner::kPolicy : PlacementOwner::kServers;
  }
  void LogConflicts(const HookOwners& owners) const;
  // The call is decided: nothing that is under way for it matters any more.
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

// The steps by which a merge, which outlives the round, takes answers of this type.
template <typename Answer, typename Merge>
HookRound::Steps StepsOf(Merge& merge, std::function<void(const Status& refusal)> done) {
  return {.request = [&merge] { return merge.Encoded(); },
          .take = [&merge](const HookServerSettings& server, const std::string& bytes) -> Status {
            // Gone at once, with its dozens of variables.
            google::protobuf::Arena arena;
            Answer& answer = *google::protobuf::Arena::CreateMessage<Answer>(&arena);
            std::optional<std::string> rest;
            if constexpr (!std::is_same_v<Merge, PodHookMerge>) {
              rest = merge.WithoutRepeatedEnvironment(bytes);
            }
            if (!answer.ParseFromString(rest ? *rest : bytes)) {
              return Internal("its answer is no such message");
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
