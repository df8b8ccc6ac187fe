// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/pipeline.h"

#include <algorithm>
#include <chrono>

#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"

namespace resmgr {
namespace {

// The name in logs for the request's own values, which no stage has set.
constexpr std::string_view kClient = "client";
// Limit of warnings that are logged once for each stage or pair of plugins: plugins choose their
// own names, and could use ever new ones.
constexpr size_t kMostReported = 256;

}  // namespace

Pipeline::Pipeline(Clock& clock, Metrics* metrics)
    : clock_(clock),
      metrics_(metrics),
      log_(GetLogger("pipeline")),
      failure_limit_(/*burst=*/10, std::chrono::minutes(1)),
      left_out_limit_(/*burst=*/10, std::chrono::minutes(1)),
      refusal_limit_(/*burst=*/20, std::chrono::minutes(1)) {}

void Pipeline::SetPolicyStage(Stage* stage) {
  policy_stage_ = stage;
  Change();
}

void Pipeline::Add(Stage& stage) {
  const auto rank = [](const Stage* each) { return each->options().rank; };
  others_.insert(std::ranges::upper_bound(others_, rank(&stage), {}, rank), &stage);
  Change();
}

void Pipeline::Remove(Stage& stage) {
  std::erase(others_, &stage);
  Change();
}

std::vector<std::string> Pipeline::StageNames() const {
  std::vector<std::string> names;
  for (const Stage* stage : stages_)
    names.push_back(stage->options().name);
  return names;
}

void Pipeline::Change() {
  stages_.clear();
  if (policy_stage_ != nullptr) stages_.push_back(policy_stage_);
  stages_.insert(stages_.end(), others_.begin(), others_.end());
  operations_ = {};
  for (const Stage* stage : stages_)
    operations_ = operations_ | stage->options().operations;
}

void Pipeline::NoteDroppedPlacement(const std::string& stage, const std::string& plugin) {
  ++dropped_placements_;
  if (metrics_ != nullptr) metrics_->CountDroppedPlacement(stage);
  if (reported_.size() == kMostReported || !reported_.emplace(stage, plugin).second) return;
  if (stage == kClient) {
    log_.Warn(
        "a client names cpuset files in the unified resources of a container: dropped, since the "
        "active policy decides about CPUs and memory nodes (reported once)");
    return;
  }
  log_.Warn(
      "stage {}{} sets or clears CPUs or memory nodes of a container: dropped, since the active "
      "policy decides about these (reported once)",
      stage, plugin.empty() ? "" : fmt::format(" (plugin {})", Printable(plugin)));
}

void Pipeline::NoteDroppedFiles() {
  NoteDroppedPlacement(std::string(kClient), "");
}

void Pipeline::NoteDroppedKeys(const Stage& stage) {
  const std::string& name = stage.options().name;
  if (metrics_ != nullptr) metrics_->CountDroppedKeys(name);
  if (!reported_keys_.insert(name).second) return;
  log_.Warn(
      "stage {} changes labels or annotations that begin with io.kubernetes.: dropped, since they "
      "are the kubelet's own (reported once)",
      name);
}

void Pipeline::NoteLeftOut(const Stage& stage, const FieldChange& change) {
  const auto suppressed = left_out_limit_.Pass(RateLimit::Clock::now());
  if (!suppressed) return;
  log_.Warn("stage {} sets {} {}, for which the request has no place: left out{}",
            stage.options().name, ToString(change.field), Printable(change.key),
            NotLogged(*suppressed));
}

void Pipeline::NoteBoth(const FieldOwner& former, const FieldOwner& later) {
  if (former.stage == later.stage || !LookLikeOneProgram(former.plugin, later.plugin)) return;
  std::string names = fmt::format("{} {} and {} {}", former.stage, Printable(former.plugin),
                                  later.stage, Printable(later.plugin));
  if (reported_both_.size() == kMostReported || reported_both_.contains(names)) return;
  log_.Warn(
      "{} both set {} of one container: if they are one program, it changes the value twice. "
      "Switch one of them off, for koordlet with -enable-nri-runtime-hook=false",
      names, ToString(later.change.field));
  reported_both_.insert(std::move(names));
}

void Pipeline::NoteRefusal(const Stage& stage, Request& request, const Status& why) {
  if (&stage == policy_stage_) return;
  if (metrics_ != nullptr) metrics_->CountStageRefusal(stage.options().name);
  const auto suppressed = refusal_limit_.Pass(RateLimit::Clock::now());
  if (!suppressed) return;
  const CreateRequest* const create = request.create();
  log_.Warn("stage {} refuses {}: {}{}", stage.options().name,
            create == nullptr
                ? "a call"
                : fmt::format("the creation of container {}", Printable(create->name)),
            Printable(Message(why)), NotLogged(*suppressed));
}

void Pipeline::NoteIgnoredFailure(const Stage& stage, const Status& why) {
  ++ignored_failures_;
  if (metrics_ != nullptr) metrics_->CountIgnoredFailure(stage.options().name);
  const auto suppressed = failure_limit_.Pass(RateLimit::Clock::now());
  if (!suppressed) return;
  log_.Warn("a call continues without stage {}: {}{}", stage.options().name, Describe(why),
            NotLogged(*suppressed));
}

void Pipeline::NoteWait(const Stage& stage, std::chrono::steady_clock::time_point since) {
  if (metrics_ == nullptr) return;
  metrics_->WaitedForStage(stage.options().name, std::chrono::steady_clock::now() - since);
}

}  // namespace resmgr
