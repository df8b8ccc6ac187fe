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
#include "pkg/model/cpu_numbers.h"
#include "pkg/model/operation.h"
#include "pkg/model/request.h"

namespace resmgr {

class LateAnswer;
class PipelineCall;
class ReplyHold;
class StageCall;

// How the call ended at the runtime.
struct Outcome {
  // The meaning of the outcome for stages that keep account of what the runtime has.
  enum class Kind {
    kDone,     // it has taken effect
    kGone,     // what it is about does not exist, which ends it like a stop or removal: NOT_FOUND
    kRefused,  // it has not taken effect, and will not
    kUnclear,  // it may have taken effect, or may do so later: only the runtime can tell. No
               // answer, or CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE
  };

  bool known = true;  // false: no answer came, or the client went away; it may have taken effect
  int code = 0;       // the runtime's gRPC status code, where it is known
  // CreateContainer, RunPodSandbox: the id that the runtime gave. ContainerStatus: that of a
  // container that has exited, else empty. Valid until After returns.
  std::string_view id{};
  std::string message{};  // of a runtime that does not answer OK
  // The changes of all stages together to the request. nullptr where there was no forwarded
  // request.
  const Adjustment* sent = nullptr;

  Kind kind() const;
  bool ok() const { return kind() == Kind::kDone; }
  bool gone() const { return kind() == Kind::kGone; }
  bool unclear() const { return kind() == Kind::kUnclear; }
  // UpdatePodSandboxResources: whether the pod has these resources now. Kubelets set its cgroup
  // before they tell the runtime, and go on where the runtime has no such call (containerd 1.7 and
  // 2.1).
  bool pod_updated() const;
};

// The list of all stages, in their order: requests pass them from the first to the last, replies
// from the last to the first. Stages of one rank keep the order in which they were added.
enum class StageRank {
  kPolicy,   // the resource manager's
  kProgram,  // stages of the program that composes the daemon (RelayDoorOptions::stages)
  kHookServers,
  kNriPlugins,  // see what hook servers change
  kCpuFiles,    // checks its mount against those of all others
};

// Sees calls on their way to the runtime and may change or refuse them: the resource manager, a
// hook server, a host of NRI plugins. Lives until no call of it is left. Loop's thread only; never
// blocks.
class Stage {
 public:
  struct Options {
    std::string name;  // for logs and `explain`
    StageRank rank = StageRank::kProgram;
    OperationSet operations{};  // that it looks at
    DetailSet details{};        // parts of a request that are read before it sees that
    // For its answer, and for a reply that it holds; counted from when it is asked. 0: none.
    std::chrono::milliseconds deadline{0};
    // Whether a request is refused or goes on without the stage where that fails to answer.
    FailurePolicy failure = FailurePolicy::kFail;
    // It may change CPU shares, quota and other numbers of a container's cgroup.
    bool sets_numbers = true;
  };

  explicit Stage(Options options) : options_(std::move(options)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Its part in a call; nullptr: it does not look at this one.
  virtual std::unique_ptr<StageCall> Begin(const Request& request) = 0;
  // Whether it decides alone about CPUs and memory nodes: what later stages say of them is dropped.
  virtual bool OwnsPlacement() const { return false; }
  // Another stage is about to set these values of a container, by a request of its own to the
  // runtime; `accepted`: the runtime has taken them.
  virtual void OnSetByStage(const ContainerId& /*id*/, const ResourceValues& /*values*/,
                            bool /*accepted*/) {}

  const Options& options() const { return options_; }
  // Calls of it that are under way.
  size_t calls() const { return calls_; }

 private:
  friend class StageCall;

  const Options options_;
  size_t calls_ = 0;
};

// One call as one stage sees it. The pipeline asks it by Before, and it answers once, at once or
// later: by Pass, Adjust, Refuse or Fail. A second or late answer is ignored. Then follows, exactly
// once, either RollBack or After, unless it refused or failed. It is destroyed without an answer
// when its time is over or the client goes away: then it gives up by itself what it has reserved.
class StageCall {
 public:
  explicit StageCall(Stage& stage) : stage_(stage) { ++stage_.calls_; }
  virtual ~StageCall();
  StageCall(const StageCall&) = delete;
  StageCall& operator=(const StageCall&) = delete;

  // `so_far`: what earlier stages change. The request may be used until the answer, and what was
  // read of it until After. Passes unless overridden.
  virtual void Before(Request& request, const Adjustment& so_far);
  // All stages have answered, and the request is sent next with these changes. Told only where a
  // stage that does not decide about placement changed something.
  virtual void BeforeSent(const Adjustment& /*sent*/) {}
  // A later stage refuses the request for this reason. RollBack follows.
  virtual void Refused(const Status& /*why*/) {}
  // The request is not forwarded, since a later stage refused it or the client went away.
  virtual void RollBack() {}
  // The call ended. Stages see that in reverse order, the client after them.
  virtual void After(Request& request, const Outcome& outcome);
  // ContainerStatus, when it is forwarded: whether the reply may show numbers in place of those
  // that the client asked for. `shares_in_file`: a stage has set a file of the container's cgroup
  // v2 in place of its shares.
  virtual bool ShowsAsked(const Request& /*request*/, bool /*shares_in_file*/) const {
    return false;
  }
  // Puts those that the client asked for in their place, when the reply is here.
  virtual void ShowAsked(const Request& /*request*/, CpuNumbers& /*reported*/) const {}
  // Which of its plugins made this change of the adjustment that it has just answered with, for
  // `explain`; "" where a stage has none.
  virtual std::string PluginOf(const FieldChange& /*change*/) const { return {}; }
  // What its plugins wanted beside that adjustment and requests cannot say; a line for each thing.
  virtual std::vector<std::string> LeftOut() const { return {}; }

  Stage& stage() const { return stage_; }

 protected:
  // The answers. When one is given after Before has returned, it may destroy this object: nothing
  // follows it.
  void Pass();
  void Adjust(Adjustment&& adjustment);
  void Adjust(ResourceValues&& values);
  // The stage decided that the client gets this status.
  void Refuse(Status status);
  // The stage could not decide: Stage::Options::failure tells what follows.
  void Fail(Status status);
  // Until the answer: whether an earlier stage decides alone about CPUs and memory nodes, so that
  // what this one says of them is dropped.
  bool PlacementIsOwned() const;
  // For an answer from elsewhere, which may come after this object's end.
  LateAnswer AnswerLater();
  // In After: the client gets the reply when this is let go, or at the deadline.
  ReplyHold HoldReply();
  // In After: the client gets this error in place of a good reply, since the stage undoes what the
  // runtime did. Earlier stages see an unknown outcome: they have to look.
  void FailReply(Status status);

 private:
  friend class LateAnswer;
  friend class PipelineCall;
  friend class ReplyHold;

  std::shared_ptr<StageCall*> Self();

  Stage& stage_;
  PipelineCall* host_ = nullptr;      // from Begin on
  std::shared_ptr<StageCall*> self_;  // nullptr inside when this object is gone
};

// The right to answer for a StageCall; can only be moved. Destroyed unused, the stage has failed.
class LateAnswer {
 public:
  LateAnswer(LateAnswer&&) noexcept = default;
  LateAnswer& operator=(LateAnswer&&) = delete;
  ~LateAnswer();

  // Each does nothing where an answer was given before, or where the call has ended.
  void Pass();
  void Adjust(Adjustment&& adjustment);
  void Refuse(Status status);
  void Fail(Status status);

 private:
  friend class StageCall;
  explicit LateAnswer(std::shared_ptr<StageCall*> call) : call_(std::move(call)) {}

  // The call that is to be answered, once; nullptr where it has ended.
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
  // As StageCall::FailReply, and lets it go.
  void Fail(Status status);

 private:
  friend class StageCall;
  explicit ReplyHold(std::shared_ptr<StageCall*> call) : call_(std::move(call)) {}

  std::shared_ptr<StageCall*> call_;
};

}  // namespace resmgr
