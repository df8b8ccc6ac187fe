// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/metrics.h"
#include "pkg/model/operation.h"
#include "pkg/pipeline/field_owners.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// The stages that calls go through, in their order. Front doors make a PipelineCall of each call
// that a stage looks at. Outlives these. Loop's thread only.
class Pipeline {
 public:
  // `clock`, for deadlines, and `metrics`, which may be null, outlive the pipeline.
  explicit Pipeline(Clock& clock, Metrics* metrics = nullptr);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // The resource manager's stage, before all others; nullptr: there is none. Stages are not owned:
  // one that is taken out lives on until no call of it is left.
  void SetPolicyStage(Stage* stage);
  // At the place of its rank.
  void Add(Stage& stage);
  void Remove(Stage& stage);

  // Whether a stage looks at such calls: all others may pass unread.
  bool LooksAt(Operation operation) const { return operations_.contains(operation); }

  // Whether the policy that is active decides alone about CPUs and memory nodes.
  bool PlacementIsOwned() const {
    return policy_stage_ != nullptr && policy_stage_->OwnsPlacement();
  }
  // Whether a stage beside the resource manager's may change numbers of containers' cgroups.
  bool OthersSetNumbers() const {
    return std::ranges::any_of(others_,
                               [](const Stage* stage) { return stage->options().sets_numbers; });
  }
  // A stage wanted some that are the policy's to decide, and they were dropped: in what it changed
  // of a call, or in a request of its own to the runtime.
  // `plugin`: which of its plugins, where it has some.
  void NoteDroppedPlacement(const Stage& stage, const std::string& plugin = {}) {
    NoteDroppedPlacement(stage.options().name, plugin);
  }

  // Called when a stage itself asks the runtime to set these values of a container, and again, with
  // `accepted`, when the runtime has accepted them.
  void TellSetByStage(const ContainerId& id, const ResourceValues& values, bool accepted) {
    if (policy_stage_ != nullptr) policy_stage_->OnSetByStage(id, values, accepted);
  }

  // In their order.
  std::vector<std::string> StageNames() const;
  // Who changed what, for `explain`.
  const FieldOwners& owners() const { return owners_; }
  // How often a stage, or a client by files of cgroup v2, wanted to set CPUs or memory nodes, which
  // the policy decides.
  uint64_t dropped_placements() const { return dropped_placements_; }
  // How often a call went on without a stage that failed.
  uint64_t ignored_failures() const { return ignored_failures_; }

 private:
  friend class PipelineCall;

  void Change();
  void NoteDroppedPlacement(const std::string& stage, const std::string& plugin);
  // The client's request names files of cgroup v2 that say where the container may run.
  void NoteDroppedFiles();
  // A stage wanted to change labels or annotations that are the kubelet's own, and they stay.
  void NoteDroppedKeys(const Stage& stage);
  // The protocol cannot carry what a stage wants, and the container gets all but that.
  void NoteLeftOut(const Stage& stage, const FieldChange& change);
  // A stage other than the resource manager's refuses the request, which tells of its own refusals.
  void NoteRefusal(const Stage& stage, Request& request, const Status& why);
  void NoteIgnoredFailure(const Stage& stage, const Status& why);
  // Two stages changed one field of a request. Warns once where their plugins look like one program
  // that is asked twice: it would scale a value twice.
  void NoteBoth(const FieldOwner& former, const FieldOwner& later);
  // A call went on, or ended, that had waited for the stage since then.
  void NoteWait(const Stage& stage, std::chrono::steady_clock::time_point since);

  Clock& clock_;
  Metrics* metrics_;
  Logger& log_;
  RateLimit failure_limit_;
  RateLimit left_out_limit_;
  RateLimit refusal_limit_;
  Stage* policy_stage_ = nullptr;
  std::vector<Stage*> others_;
  std::vector<Stage*> stages_;  // all of them
  OperationSet operations_;
  FieldOwners owners_;
  // Stages whose placements were dropped, with their plugins.
  std::set<std::pair<std::string, std::string>> reported_;
  std::set<std::string, std::less<>> reported_keys_;  // and those whose labels were
  std::set<std::string, std::less<>> reported_both_;  // and names of one program
  uint64_t dropped_placements_ = 0;
  uint64_t ignored_failures_ = 0;
};

}  // namespace resmgr
