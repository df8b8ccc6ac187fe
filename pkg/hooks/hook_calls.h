// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_merge.h"
#include "pkg/hooks/hook_stage.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// One hook of one call: asks the servers one after the other. Destroying it ends the round without
// a result. Loop's thread only.
class HookRound {
 public:
  struct Steps {
    // Returns the serialized request for the next server.
    std::function<std::string()> request;
    // Takes a server's answer; if it returns an error, the server counts as failed.
    std::function<Status(const HookServerSettings& server, const std::string& answer)> take;
    // OK: the call goes on with the changes so far. An error refuses the call. Runs once, never
    // inside Start, and may destroy the round.
    std::function<void(const Status& refusal)> done;
  };

  // The stage outlives this object. There must be at least one server.
  HookRound(HookStage& stage, HookPoint point, HookStage::Servers servers, Steps steps);
  ~HookRound();
  HookRound(const HookRound&) = delete;
  HookRound& operator=(const HookRound&) = delete;

  void Start() { Ask(); }
  // Called when no time is left: the server that is being asked and all later ones count as failed.
  void Expire();

 private:
  void Ask();
  void OnAnswer(const StatusOr<std::string>& answer);
  void End(const Status& refusal);

  HookStage& stage_;
  const HookPoint point_;
  HookStage::Servers servers_;
  Steps steps_;
  size_t next_ = 0;
  Lifetime lifetime_;
};

// HookStage's calls, by their operations. Only for HookStage.

// nullptr: the operation has no hook.
std::unique_ptr<StageCall> MakeHookCall(HookStage& stage, Operation operation);

// "hook PreCreateContainer of koordlet.json: ...", with the code of `why`.
Status FailureOf(HookPoint point, const HookServerPort& server, const Status& why);

// The common part of calls. An operation without hooks uses this class itself.
class HookCall : public StageCall {
 public:
  explicit HookCall(HookStage& stage) : StageCall(stage), stage_(stage) {}

  // Reports the outcome to the inventory.
  void After(Request& request, const Outcome& outcome) override {
    stage_.view().inventory().TakeOutcome(request, outcome);
  }

 protected:
  HookStage& hooks() const { return stage_; }
  // Looks up the object of a post hook, if servers have this hook, and passes it to `tell`.
  template <typename ObjectId, typename Tell>
  void LookUpFor(HookPoint point, const ObjectId& id, Tell tell) {
    if (stage_.ServersOf(point).empty()) return;
    stage_.view().LookUp(id, [&stage = stage_, tell](const auto& found) {
      if (found.ok()) tell(stage, **found);
    });
  }

 private:
  HookStage& stage_;
};

// The common part of calls that ask servers before the runtime: has the servers and the time limit.
// No callback runs after this object's end.
class AskingCall : public HookCall {
 public:
  AskingCall(HookStage& stage, HookPoint point) : HookCall(stage), point_(point) {}

  // Calls Consider once the servers are known.
  void Before(Request& request, const Adjustment& so_far) final;

 protected:
  // Called by Before, with its arguments, once the servers are known.
  virtual void Consider(Request& request, const Adjustment& so_far) = 0;

  HookPoint point() const { return point_; }
  // Finds the servers configured now, and starts the time limit for all of them. False: there are
  // none.
  bool FindServers();
  // Asks the servers in turn; `done` in `steps` gets the result.
  void Ask(HookRound::Steps steps);
  // Ends the call without asking, since the request to the servers cannot be built: refuses it if
  // the policy of a server is Fail, otherwise passes it.
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

  const HookPoint point_;
  HookStage::Servers servers_;
  std::optional<HookRound> round_;
  EventLoop::HandlePtr budget_;
  Lifetime lifetime_;
};

// The common part of calls about containers: sends the question and merges the answers.
class ContainerCall : public AskingCall {
 public:
  using AskingCall::AskingCall;

  std::string PluginOf(const FieldChange& change) const override {
    return merge_ ? merge_->owners().Of(change) : std::string();
  }

 protected:
  // Asks the servers about a container of this pod. Passes the call if `asks` is false, or if
  // servers are not asked about this pod.
  void Consult(bool asks, const api::PodSandboxHookRequest& pod,
               api::ContainerResourceHookRequest message, BesideRequest beside);
  // Set by Consult.
  std::optional<ContainerHookMerge>& merge() { return merge_; }

 private:
  std::optional<ContainerHookMerge> merge_;
};

}  // namespace resmgr::hooks
