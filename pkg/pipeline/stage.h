// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container_details.h"
#include "pkg/model/request.h"
#include "pkg/model/resources.h"

namespace resmgr {

class LateAnswer;
class PipelineCall;
class ReplyHold;
class StageCall;

// The end of the call at the runtime.
struct Outcome {
  // The outcome's meaning for stages that keep account of the runtime's objects.
  enum class Kind {
    kDone,     // the call has taken effect
    kGone,     // NOT_FOUND: its object does not exist, so a stop or removal has succeeded
    kRefused,  // the call has not taken effect, and will not
    kUnclear,  // no answer, CANCELLED, DEADLINE_EXCEEDED or UNAVAILABLE: it may have taken effect,
               // or may do so later; only the runtime knows
  };

  bool known = true;  // false: no answer, or the client went away; it may have taken effect
  int code = 0;       // the runtime's gRPC status code, if known
  // CreateContainer, RunPodSandbox: the new id from the runtime. ContainerStatus: the container's
  // id if it has exited, else empty. Valid until After returns.
  std::string_view id{};
  std::string message{};  // the runtime's error message
  // The sum of all stages' changes to the request; nullptr if no request was forwarded.
  const Adjustment* sent = nullptr;

  Kind kind() const;
  bool ok() const { return kind() == Kind::kDone; }
  bool gone() const { return kind() == Kind::kGone; }
  bool unclear() const { return kind() == Kind::kUnclear; }
  // UpdatePodSandboxResources: whether the pod has these resources now. Kubelets set its cgroup
  // before they call the runtime, and ignore a runtime without such a call (containerd 1.7 and
  // 2.1).
  bool pod_updated() const;
};

// The list of all stages, in their order: requests pass them from the first to the last, replies
// from the last to the first. Stages of one rank keep the order in which they were added.
enum class StageRank {
  kPolicy,   // the resource manager's
  kProgram,  // stages of the program that composes the daemon (RelayDoorOptions::stages)
  kHookServers,
  kNriPlugins,  // plugins see the changes of hook servers
  kCpuFiles,    // checks its mount against the mounts of all other stages
};

// Sees calls on their way to the runtime and may change or refuse them: the resource manager, a
// hook server, a host of NRI plugins. Must live until it has no calls. Loop's thread only; never
// blocks.
class Stage {
 public:
  struct Options {
    std::string name;  // for logs and `explain`
    StageRank rank = StageRank::kProgram;
    OperationSet operations{};  // operations that the stage sees
    DetailSet details{};        // parts of a request that are read before the stage sees it
    // Time limit for its answer, and for a reply that it holds, from the moment when it is asked.
    // 0: none.
    std::chrono::milliseconds deadline{0};
    // Whether a request is refused or goes on if the stage fails to answer.
    FailurePolicy failure = FailurePolicy::kFail;
    // It may change CPU shares, quota and other numbers of a container's cgroup.
    bool sets_numbers = true;
  };

  explicit Stage(Options options) : options_(std::move(options)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Creates the stage's part in a call; nullptr: the stage does not need this call.
  virtual std::unique_ptr<StageCall> Begin(const Request& request) = 0;
  // Whether this stage alone decides about CPUs and memory nodes: values for them from later stages
  // are dropped.
  virtual bool OwnsPlacement() const { return false; }
  // Another stage is about to set these values of a container, by its own request to the runtime;
  // `accepted`: the runtime has taken them.
  virtual void OnSetByStage(const ContainerId& /*id*/, const ResourceValues& /*values*/,
                            bool /*accepted*/) {}

  const Options& options() const { return options_; }
  // Number of its calls under way.
  size_t calls() const { return calls_; }

 private:
  friend class StageCall;

  const Options options_;
  size_t calls_ = 0;
};

// One call as one stage sees it. The pipeline asks it by Before, and it answers once, at once or
// later: by Pass, Adjust, Refuse or Fail. A second or late answer is ignored. Then follows, exactly
// once, either RollBack or After, unless it refused or failed. It is destroyed without an answer
// when its time is over or the client goes away: then it must release its reservations itself.
class StageCall {
 public:
  explicit StageCall(Stage& stage) : stage_(stage) { ++stage_.calls_; }
  virtual ~StageCall();
  StageCall(const StageCall&) = delete;
  StageCall& operator=(const StageCall&) = delete;

  // `so_far`: the earlier stages' changes. The request may be used until the answer, and its read
  // details until After. Passes unless overridden.
  virtual void Before(Request& request, const Adjustment& so_far);
  // All stages have answered, and the request is sent next with these changes. Called only if a
  // stage that does not own the placement changed something.
  virtual void BeforeSent(const Adjustment& /*sent*/) {}
  // A later stage refuses the request for this reason. RollBack follows.
  virtual void Refused(const Status& /*why*/) {}
  // The request is not forwarded, since a later stage refused it or the client went away.
  virtual void RollBack() {}
  // The call has ended. Stages are called in reverse order, before the client gets the reply.
  virtual void After(Request& request, const Outcome& outcome);
  // For ContainerStatus, when it is forwarded: whether the reply may have other numbers than the
  // client requested. `shares_in_file`: a stage has set a file of the container's cgroup v2 instead
  // of its shares.
  virtual bool ShowsAsked(const Request& /*request*/, bool /*shares_in_file*/) const {
    return false;
  }
  // Replaces the reported numbers by those that the client requested.
  virtual void ShowAsked(const Request& /*request*/, CpuNumbers& /*reported*/) const {}
  // The plugin behind this change of the adjustment that the stage has just answered with, for
  // `explain`; "" without plugins.
  virtual std::string PluginOf(const FieldChange& /*change*/) const { return {}; }
  // Its plugins' changes that requests cannot express; a line for each.
  virtual std::vector<std::string> LeftOut() const { return {}; }

  Stage& stage() const { return stage_; }

 protected:
  // The answers. After Before has returned, an answer may destroy this object, so it must be the
  // caller's last action.
  void Pass();
  void Adjust(Adjustment&& adjustment);
  void Adjust(ResourceValues&& values);
  // The stage decided that the client gets this status.
  void Refuse(Status status);
  // The stage could not decide: Stage::Options::failure decides what happens.
  void Fail(Status status);
  // Valid until the answer: whether an earlier stage alone decides about CPUs and memory nodes, so
  // that this stage's values for them are dropped.
  bool PlacementIsOwned() const;
  // Returns the right to answer later, also after this object's end.
  LateAnswer AnswerLater();
  // In After: the client gets the reply when the hold is released, or at the deadline.
  ReplyHold HoldReply();
  // In After: the client gets this error instead of a successful reply, since the stage undoes the
  // runtime's action. Earlier stages see an unknown outcome and must ask the runtime.
  void FailReply(Status status);

 private:
  friend class LateAnswer;
  friend class PipelineCall;
  friend class ReplyHold;

  std::shared_ptr<StageCall*> Self();

  Stage& stage_;
  PipelineCall* host_ = nullptr;      // set from Begin on
  std::shared_ptr<StageCall*> self_;  // the pointer is nullptr after this object's end
};

// The right to answer for a StageCall; can only be moved. Destroying it unused is a failure of the
// stage.
class LateAnswer {
 public:
  LateAnswer(LateAnswer&&) noexcept = default;
  LateAnswer& operator=(LateAnswer&&) = delete;
  ~LateAnswer();

  // Each has no effect after another answer, or after the end of the call.
  void Pass();
  void Adjust(Adjustment&& adjustment);
  void Refuse(Status status);
  void Fail(Status status);

 private:
  friend class StageCall;
  explicit LateAnswer(std::shared_ptr<StageCall*> call) : call_(std::move(call)) {}

  // Returns the call to be answered, at most once; nullptr if it has ended or was returned before.
  StageCall* Take();

  std::shared_ptr<StageCall*> call_;
};

// Keeps a reply from the client as long as it exists; can only be moved.
class ReplyHold {
 public:
  ReplyHold(ReplyHold&&) noexcept = default;
  ReplyHold& operator=(ReplyHold&&) = delete;
  ~ReplyHold() { Release(); }

  void Release();
  // Calls StageCall::FailReply, and releases the hold.
  void Fail(Status status);

 private:
  friend class StageCall;
  explicit ReplyHold(std::shared_ptr<StageCall*> call) : call_(std::move(call)) {}

  std::shared_ptr<StageCall*> call_;
};

}  // namespace resmgr
