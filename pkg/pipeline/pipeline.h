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
#include "pkg/model/request.h"
#include "pkg/pipeline/field_owners.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/clock.h"

namespace resmgr {

// The stages that calls go through, in their order. Front doors create a PipelineCall for each call
// that a stage needs. Outlives these calls. Loop's thread only.
class Pipeline {
 public:
  // `clock`, for deadlines, and `metrics`, which may be null, outlive the pipeline.
  explicit Pipeline(Clock& clock, Metrics* metrics = nullptr);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Sets the resource manager's stage, which precedes all others; nullptr removes it. Stages are
  // not owned: a removed stage must live on until it has no calls.
  void SetPolicyStage(Stage* stage);
  // Adds the stage at the place of its rank.
  void Add(Stage& stage);
  void Remove(Stage& stage);

  // Whether a stage needs calls of this operation; if not, they may pass unread.
  bool LooksAt(Operation operation) const { return operations_.contains(operation); }

  // Whether the active policy alone decides about CPUs and memory nodes.
  bool PlacementIsOwned() const {
    return policy_stage_ != nullptr && policy_stage_->OwnsPlacement();
  }
  // Whether another stage than the resource manager's may change numbers of containers' cgroups.
  bool OthersSetNumbers() const {
    return std::ranges::any_of(others_,
                               [](const Stage* stage) { return stage->options().sets_numbers; });
  }
  // Counts CPUs or memory nodes that a stage wanted, in a call or in its own request to the
  // runtime, and that were dropped because the policy decides. `plugin`: the stage's plugin, if
  // any.
  void NoteDroppedPlacement(const Stage& stage, const std::string& plugin = {}) {
    NoteDroppedPlacement(stage.options().name, plugin);
  }

  // Called when a stage itself asks the runtime to set these values of a container, and again, with
  // `accepted`, when the runtime has accepted them.
  void TellSetByStage(const ContainerId& id, const ResourceValues& values, bool accepted) {
    if (policy_stage_ != nullptr) policy_stage_->OnSetByStage(id, values, accepted);
  }

  // Names in the stages' order.
  std::vector<std::string> StageNames() const;
  // The stage that changed each field, for `explain`.
  const FieldOwners& owners() const { return owners_; }
  // How often CPUs or memory nodes from a stage, or from a client's cgroup v2 files, were dropped
  // because the policy decides them.
  uint64_t dropped_placements() const { return dropped_placements_; }
  // How often a call went on without a stage that failed.
  uint64_t ignored_failures() const { return ignored_failures_; }

 private:
  friend class PipelineCall;

  void Change();
  void NoteDroppedPlacement(const std::string& stage, const std::string& plugin);
  // Notes a client's request with files of cgroup v2 about CPUs or memory nodes.
  void NoteDroppedFiles();
  // Notes that a stage wanted to change labels or annotations that belong to the kubelet. They stay
  // unchanged.
  void NoteDroppedKeys(const Stage& stage);
  // Notes a stage's change that the protocol cannot carry and that is left out.
  void NoteLeftOut(const Stage& stage, const FieldChange& change);
  // Notes a refusal by another stage than the resource manager's, which reports its refusals
  // itself.
  void NoteRefusal(const Stage& stage, Request& request, const Status& why);
  void NoteIgnoredFailure(const Stage& stage, const Status& why);
  // Notes that two stages changed one field of a request. Warns once if their plugins look like one
  // program that is asked twice: it would scale a value twice.
  void NoteBoth(const FieldOwner& former, const FieldOwner& later);
  // Notes that a call has waited for the stage from `since` until now.
  void NoteWait(const Stage& stage, std::chrono::steady_clock::time_point since);

  Clock& clock_;
  Metrics* metrics_;
  Logger& log_;
  RateLimit failure_limit_;
  RateLimit left_out_limit_;
  RateLimit refusal_limit_;
  Stage* policy_stage_ = nullptr;
  std::vector<Stage*> others_;
  std::vector<Stage*> stages_;  // all stages
  OperationSet operations_;
  FieldOwners owners_;
  // Stages, with their plugins, whose dropped placements were logged.
  std::set<std::pair<std::string, std::string>> reported_;
  std::set<std::string, std::less<>> reported_keys_;  // stages whose dropped labels were logged
  std::set<std::string, std::less<>>
      reported_both_;  // pairs of plugins that look like one program, logged before
  uint64_t dropped_placements_ = 0;
  uint64_t ignored_failures_ = 0;
};

}  // namespace resmgr
