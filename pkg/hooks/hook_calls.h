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
  // Passes the object of a post hook to `tell`. If it is not known (nullptr), it is looked up, if
  // servers have this hook.
  template <typename ObjectId, typename Object, typename Tell>
  void TellAbout(HookPoint point, const ObjectId& id, const std::shared_ptr<Object>& known,
                 Tell tell) {
    if (known != nullptr) return tell(stage_, *known);
    if (stage_.ServersOf(point).empty()) return;
    stage_.view().LookUp(id, [&stage = stage_, tell](const auto& found) {
      if (found.ok()) tell(stage, **found);
    });
  }

 private:
  HookStage& stage_;
};

// The common part of calls that ask servers before the runtime: asks them one after the other, with
// one time limit for all. No callback runs after this object's end.
class AskingCall : public HookCall {
 public:
  AskingCall(HookStage& stage, HookPoint point) : HookCall(stage), point_(point) {}
  ~AskingCall() override;

  // Calls Consider once the servers are known.
  void Before(Request& request, const Adjustment& so_far) final;
  std::string PluginOf(const FieldChange& change) const override {
    return merge_ != nullptr ? merge_->owners().Of(change) : std::string();
  }

 protected:
  // Called by Before, with its arguments, once the servers are known.
  virtual void Consider(Request& request, const Adjustment& so_far) = 0;

  HookPoint point() const { return point_; }
  // Finds the servers configured now, and starts the time limit for all of them. False: there are
  // none.
  bool FindServers();
  // Asks the servers that were found, and answers with the result. `merge` is a member of this
  // call.
  void Ask(HookMerge& merge);
  // Passes the call without asking.
  void PassUnasked();
  // Ends the call: the servers that have not answered count as failed for this reason.
  void GiveUp(const Status& why);
  // Wraps a callback, so that it does nothing once this call has ended or its time is over.
  template <typename Result>
  std::function<void(StatusOr<Result>)> InTime(std::function<void(StatusOr<Result>)> done) {
    return lifetime_.Guard(std::move(done));
  }

 private:
  void AskNext();
  void OnAnswer(const StatusOr<std::string>& answer);
  // Takes the failure of a server; true: it has refused and thereby ended the call.
  bool Fails(const HookServerPort& server, const Status& why);
  void Finish();
  void LogConflicts() const;
  // The call is decided: pending answers are dropped.
  void StopWaiting();

  const HookPoint point_;
  HookStage::Servers servers_;
  size_t next_ = 0;             // the server that is being asked
  HookMerge* merge_ = nullptr;  // set by Ask
  EventLoop::HandlePtr budget_;
  Lifetime lifetime_;
};

// The common part of calls about containers: sends the question and merges the answers.
class ContainerCall : public AskingCall {
 public:
  using AskingCall::AskingCall;

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
