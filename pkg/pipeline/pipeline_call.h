// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/field_owners.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// One call on its way through the stages and back.
//
//   Start -> each stage answers, in order -> Front::OnDecided
//   OnReply -> each stage sees it, in reverse order -> returns true, or Front::OnReplySeen
//
// A stage's reservation is kept or given up exactly once: if a stage refuses or fails, or the call
// is abandoned before it was forwarded, the former stages roll back, the last one first; after that
// each sees the outcome, which is unknown if no reply comes. Loop's thread only.
class PipelineCall {
 public:
  class Front {
   public:
    // Called once after Start, at once or later. A refusal that is not OK is the client's answer;
    // else the adjusted request must be forwarded. May destroy the call.
    virtual void OnDecided(const Status& refusal, const Adjustment& adjustment) = 0;
    // Called after OnReply returned false: the client may get the reply. May destroy the call.
    virtual void OnReplySeen() = 0;
    // Whether the protocol has a place for the field in such a request. Setting another field is a
    // failure of the stage.
    virtual bool Has(Operation operation, Field field) const = 0;
    // Whether a change that the protocol cannot carry is left out with a warning, instead of
    // counting as a failure of the stage.
    virtual bool LeavesOut(Operation /*operation*/, const FieldChange& /*change*/) const {
      return false;
    }
    // Whether the protocol can remove a list of CPUs or memory nodes from a request. Otherwise
    // removing one is a failure of the stage.
    virtual bool ClearsPlacement() const { return true; }
    // Whether the protocol can remove a file of cgroup v2 from a request. Otherwise a request with
    // a file about CPUs or memory nodes is refused, and other files stay.
    virtual bool RemovesFiles() const { return true; }

   protected:
    ~Front() = default;
  };

  // Both outlive the call.
  PipelineCall(Pipeline& pipeline, Front& front) : pipeline_(pipeline), front_(front) {}
  ~PipelineCall() { Abandon(); }
  PipelineCall(const PipelineCall&) = delete;
  PipelineCall& operator=(const PipelineCall&) = delete;

  // Asks the stages that the pipeline has now. The request outlives the call.
  void Start(Request& request);
  // Called once with the reply to the forwarded request. True: the client may get it now.
  bool OnReply(Outcome&& outcome);
  // Called if the decision was not a refusal but the request cannot be forwarded after all. All
  // stages roll back.
  void RollBack();
  // From now on the call does not wait for stages whose failure is ignored, since the client's time
  // is nearly over. The call may be decided within this function.
  void HurryOptional();
  // Ends the call because the client has gone away; the front gets no further calls.
  void Abandon();
  // After the request was forwarded. ShowsAsked: whether numbers in the reply must be replaced by
  // those that the client requested (StageCall::ShowsAsked). ShowAsked replaces them.
  bool ShowsAsked() const;
  void ShowAsked(CpuNumbers& reported) const;
  // Valid when the client may get the reply. If it is not OK, the client gets this error instead of
  // a successful reply.
  const Status& reply_error() const { return reply_error_; }
  // Whether a stage holds the reply.
  bool HoldsReply() const { return phase_ == Phase::kReplying; }
  bool over() const { return phase_ == Phase::kOver; }

 private:
  friend class ReplyHold;
  friend class StageCall;

  enum class Phase { kIdle, kAsking, kForwarded, kReplying, kOver };
  // The answer of the asked stage.
  enum class Answer { kNone, kAccepted, kRefused, kFailed };

  // Used by StageCall:
  bool IsAsked(const StageCall& call) const {
    return phase_ == Phase::kAsking && answer_ == Answer::kNone && calls_[asked_].get() == &call;
  }
  // The asked stage's answers.
  void Adjust(Adjustment&& adjustment);
  void Accept() { TakeAnswer(Answer::kAccepted); }
  void Refuse(Status status);
  void Fail(Status status);
  void Hold(const StageCall& call);
  void Release(const StageCall& call);
  void FailReply(const StageCall& call, Status status);

  void TakeAnswer(Answer answer);
  bool SkipsAsked() const;
  Status NoTimeForAsked() const;
  void Ask();
  // Acts on the answer. False: the call is over.
  bool Proceed();
  void EndWith(const Status& refusal);
  void Forget(size_t from);
  void RollBackAll();
  // Records the stage's changes. Fails if the protocol cannot carry one of them.
  Status NoteChanges(const StageCall& call, const Adjustment& adjustment);
  // Removes the cgroup v2 files that the protocol cannot carry from the adjustment.
  void LeaveOutFiles(const Stage& stage, Adjustment& adjustment);
  // Not OK: the request names files of cgroup v2 that could not be removed.
  Status CheckFiles() const;
  // Removes those of the request's own cgroup v2 files whose values are decided here.
  void DropFiles();
  bool PassReply();
  void StartTimer(void (PipelineCall::*expire)());
  void ExpireAnswer();
  void ExpireHold();
  bool PlacementIsOwned() const;
  void KeepOwners();

  Pipeline& pipeline_;
  Front& front_;
  Request* request_ = nullptr;
  Adjustment adjustment_;
  // Stages that have accepted, then the asked one, then the others.
  absl::InlinedVector<std::unique_ptr<StageCall>, 2> calls_;
  size_t asked_ = 0;
  Phase phase_ = Phase::kIdle;
  Answer answer_ = Answer::kNone;
  bool in_stage_ = false;  // a method of a stage runs: its answer is handled when it returns
  bool held_ = false;
  bool hurries_ = false;        // HurryOptional was called
  bool dropped_files_ = false;  // dropped files were already counted for this call
  Status refusal_;              // by a stage that refused or failed
  Outcome outcome_;
  Status reply_error_;
  std::chrono::steady_clock::time_point waiting_since_;  // when the wait for a stage began
  EventLoop::HandlePtr deadline_;
  std::vector<std::string> left_out_;
  std::vector<FieldOwner> owners_;  // changes by stages other than the placement's owner
};

}  // namespace resmgr
