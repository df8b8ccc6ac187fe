// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/pipeline_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

// Sets a flag while a method of a stage runs.
class InStage {
 public:
  explicit InStage(bool& flag) : flag_(flag) { flag_ = true; }
  ~InStage() { flag_ = false; }
  InStage(const InStage&) = delete;
  InStage& operator=(const InStage&) = delete;

 private:
  bool& flag_;
};

}  // namespace

void PipelineCall::Start(Request& request) {
  request_ = &request;
  phase_ = Phase::kAsking;
  for (Stage* const stage : pipeline_.stages_) {
    if (!stage->options().operations.contains(request.operation())) continue;
    std::unique_ptr<StageCall> call = stage->Begin(request);
    if (call == nullptr) continue;
    call->host_ = this;
    calls_.push_back(std::move(call));
  }
  if (!request.files.empty() && !front_.RemovesFiles()) {
    if (const Status status = CheckFiles(); !status.ok()) return EndWith(status);
  }
  Ask();
}

Status PipelineCall::CheckFiles() const {
  const bool owned =
      std::ranges::any_of(calls_, [](const auto& call) { return call->stage().OwnsPlacement(); });
  const auto file = std::ranges::find_if(request_->files, IsPlacementFile);
  if (!owned || file == request_->files.end()) return OkStatus();
  return FailedPrecondition(
      "the request sets {} in its unified resources, which would win over the CPUs and memory "
      "nodes "
      "that the active policy decides, and the protocol cannot take it out",
      Printable(*file));
}

void PipelineCall::Ask() {
  while (asked_ < calls_.size()) {
    StageCall& call = *calls_[asked_];
    answer_ = Answer::kNone;
    {
      const InStage running(in_stage_);
      const DetailSet details = call.stage().options().details;
      if (!details.empty()) request_->Details(details);
      call.Before(*request_, adjustment_);
    }
    if (answer_ == Answer::kNone && SkipsAsked()) {
      refusal_ = NoTimeForAsked();
      answer_ = Answer::kFailed;
    }
    if (answer_ == Answer::kNone) {
      StartTimer(&PipelineCall::ExpireAnswer);
      return;
    }
    if (!Proceed()) return;
  }
  phase_ = Phase::kForwarded;
  if (!owners_.empty()) {
    for (const auto& call : calls_)
      call->BeforeSent(adjustment_);
  }
  front_.OnDecided(OkStatus(), adjustment_);
}

void PipelineCall::HurryOptional() {
  hurries_ = true;
  if (phase_ == Phase::kAsking && !in_stage_ && SkipsAsked()) Fail(NoTimeForAsked());
}

bool PipelineCall::SkipsAsked() const {
  return hurries_ && calls_[asked_]->stage().options().failure == FailurePolicy::kIgnore;
}

Status PipelineCall::NoTimeForAsked() const {
  return DeadlineExceeded("stage {} did not answer before the client's time was over",
                          calls_[asked_]->stage().options().name);
}

void PipelineCall::TakeAnswer(Answer answer) {
  answer_ = answer;
  if (in_stage_) return;
  deadline_.reset();
  pipeline_.NoteWait(calls_[asked_]->stage(), waiting_since_);
  if (Proceed()) Ask();
}

bool PipelineCall::Proceed() {
  if (answer_ == Answer::kAccepted) {
    ++asked_;
    return true;
  }
  const Status refusal = std::exchange(refusal_, OkStatus());
  const Stage& stage = calls_[asked_]->stage();
  if (answer_ == Answer::kFailed && stage.options().failure == FailurePolicy::kIgnore) {
    pipeline_.NoteIgnoredFailure(stage, refusal);
    const std::unique_ptr<StageCall> failed = std::move(calls_[asked_]);
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(asked_));
    return true;
  }
  pipeline_.NoteRefusal(stage, *request_, refusal);
  for (size_t i = 0; i < asked_; ++i)
    calls_[i]->Refused(refusal);
  EndWith(refusal);
  return false;
}

void PipelineCall::EndWith(const Status& refusal) {
  Abandon();
  front_.OnDecided(refusal, adjustment_);
}

void PipelineCall::Abandon() {
  const Phase phase = std::exchange(phase_, Phase::kOver);
  deadline_.reset();
  if (phase == Phase::kAsking) {
    Forget(asked_);
    RollBackAll();
    return;
  }
  if (phase == Phase::kForwarded) outcome_ = {.known = false, .sent = &adjustment_};
  // The stage that holds the reply has seen the outcome already.
  if (phase == Phase::kReplying && held_) calls_.pop_back();
  while (!calls_.empty()) {
    calls_.back()->After(*request_, outcome_);
    calls_.pop_back();
  }
  if (phase == Phase::kReplying) KeepOwners();
}

void PipelineCall::RollBack() {
  if (phase_ != Phase::kForwarded) return;
  phase_ = Phase::kOver;
  RollBackAll();
}

void PipelineCall::RollBackAll() {
  while (!calls_.empty()) {
    calls_.back()->RollBack();
    calls_.pop_back();
  }
}

// Destroys the calls of stages that have not accepted.
void PipelineCall::Forget(size_t from) {
  while (calls_.size() > from)
    calls_.pop_back();
}

namespace {

// The stage's plugin that wants to set CPUs or memory nodes; "" if unknown.
std::string PluginOfPlacement(const StageCall& call) {
  for (const FieldChange& change :
       {FieldChange{.field = Field::kCpusetCpus}, FieldChange{.field = Field::kCpusetMems},
        FieldChange{.field = Field::kUnified, .key = "cpuset.cpus"},
        FieldChange{.field = Field::kUnified, .key = "cpuset.mems"}}) {
    std::string plugin = call.PluginOf(change);
    if (!plugin.empty()) return plugin;
  }
  return {};
}

}  // namespace

void PipelineCall::Adjust(Adjustment&& adjustment) {
  const StageCall& call = *calls_[asked_];
  const Stage& stage = call.stage();
  if (!stage.OwnsPlacement()) {
    if (PlacementIsOwned() && adjustment.DropPlacement()) {
      pipeline_.NoteDroppedPlacement(stage, PluginOfPlacement(call));
    }
    if (adjustment.DropKubeletsOwn()) pipeline_.NoteDroppedKeys(stage);
    adjustment.TranslateFiles();
    LeaveOutFiles(stage, adjustment);
    adjustment.YieldToFiles();
    if (Status noted = NoteChanges(call, adjustment); !noted.ok()) return Fail(std::move(noted));
    std::ranges::move(call.LeftOut(), std::back_inserter(left_out_));
  }
  if (asked_ == 0) {
    adjustment_ = std::move(adjustment);
  } else {
    adjustment_.Merge(std::move(adjustment));
  }
  if (!request_->files.empty() && front_.RemovesFiles()) DropFiles();
  Accept();
}

void PipelineCall::DropFiles() {
  const bool owned = PlacementIsOwned() || calls_[asked_]->stage().OwnsPlacement();
  const bool placed = owned && (adjustment_.Says({.field = Field::kCpusetCpus}) ||
                                adjustment_.Says({.field = Field::kCpusetMems}));
  for (const std::string& file : request_->files) {
    const bool set_by_stage =
        adjustment_.wide() != nullptr && adjustment_.wide()->unified.Find(file) != nullptr;
    if (set_by_stage) continue;
    if (IsPlacementFile(file) && placed) {
      adjustment_.Wide().unified.Remove(file);
      if (!std::exchange(dropped_files_, true)) pipeline_.NoteDroppedFiles();
    } else if (const auto field = FieldOfFile(file, ""); field && adjustment_.Says(*field)) {
      adjustment_.Wide().unified.Remove(file);
    }
  }
}

void PipelineCall::LeaveOutFiles(const Stage& stage, Adjustment& adjustment) {
  if (adjustment.wide() == nullptr || adjustment.wide()->unified.empty()) return;
  adjustment.Wide().unified.EraseIf([this, &stage](const auto& edit) {
    const FieldChange change{.field = Field::kUnified, .key = edit.key};
    if (!front_.LeavesOut(request_->operation(), change)) return false;
    pipeline_.NoteLeftOut(stage, change);
    return true;
  });
}

Status PipelineCall::NoteChanges(const StageCall& call, const Adjustment& adjustment) {
  std::vector<FieldChange> changes = adjustment.Changes();
  const std::string& name = call.stage().options().name;
  std::erase_if(changes, [this, &call](const FieldChange& change) {
    if (!front_.LeavesOut(request_->operation(), change)) return false;
    pipeline_.NoteLeftOut(call.stage(), change);
    return true;
  });
  for (const FieldChange& change : changes) {
    if (front_.Has(request_->operation(), change.field)) continue;
    return Unimplemented("stage {} sets {}, for which the request has no place", name,
                         ToString(change.field));
  }
  if ((adjustment.clears_cpus() || adjustment.clears_mems()) && !front_.ClearsPlacement()) {
    return Unimplemented(
        "stage {} clears {}, which the protocol cannot say", name,
        ToString(adjustment.clears_cpus() ? Field::kCpusetCpus : Field::kCpusetMems));
  }
  for (FieldChange& change : changes) {
    std::string plugin = call.PluginOf(change);
    std::string value = ShownValue(adjustment, change);
    // Only numbers are compared: they are few, and if a program is asked twice, it would scale them
    // twice.
    const auto before = change.field > Field::kOomScoreAdj || plugin.empty()
                            ? owners_.end()
                            : std::ranges::find(owners_, change, &FieldOwner::change);
    if (before != owners_.end()) {
      pipeline_.NoteBoth(*before, {.change = change, .stage = name, .plugin = plugin});
    }
    owners_.push_back({.change = std::move(change),
                       .stage = name,
                       .plugin = std::move(plugin),
                       .value = std::move(value)});
  }
  return OkStatus();
}

// Whether a stage before the asked one owns the placement.
bool PipelineCall::PlacementIsOwned() const {
  for (size_t i = 0; i < asked_; ++i) {
    if (calls_[i]->stage().OwnsPlacement()) return true;
  }
  return false;
}

void PipelineCall::Refuse(Status status) {
  refusal_ = std::move(status);
  TakeAnswer(Answer::kRefused);
}

void PipelineCall::Fail(Status status) {
  refusal_ = std::move(status);
  TakeAnswer(Answer::kFailed);
}

bool PipelineCall::OnReply(Outcome&& outcome) {
  phase_ = Phase::kReplying;
  outcome_ = std::move(outcome);
  outcome_.sent = &adjustment_;
  return PassReply();
}

bool PipelineCall::PassReply() {
  while (!calls_.empty()) {
    held_ = false;
    {
      const InStage running(in_stage_);
      calls_.back()->After(*request_, outcome_);
    }
    if (held_) {
      StartTimer(&PipelineCall::ExpireHold);
      return false;
    }
    calls_.pop_back();
  }
  phase_ = Phase::kOver;
  KeepOwners();
  return true;
}

void PipelineCall::Hold(const StageCall& call) {
  if (phase_ == Phase::kReplying && in_stage_ && calls_.back().get() == &call) held_ = true;
}

void PipelineCall::Release(const StageCall& call) {
  if (phase_ != Phase::kReplying || !held_ || calls_.back().get() != &call) return;
  held_ = false;
  if (in_stage_) return;
  deadline_.reset();
  pipeline_.NoteWait(call.stage(), waiting_since_);
  calls_.pop_back();
  if (PassReply()) front_.OnReplySeen();
}

void PipelineCall::FailReply(const StageCall& call, Status status) {
  if (phase_ != Phase::kReplying || calls_.empty() || calls_.back().get() != &call) return;
  if (status.ok() || !outcome_.ok()) return;
  reply_error_ = std::move(status);
  outcome_ = {.known = false, .sent = &adjustment_};
}

void PipelineCall::StartTimer(void (PipelineCall::*expire)()) {
  const StageCall& call = *(phase_ == Phase::kAsking ? calls_[asked_] : calls_.back());
  waiting_since_ = std::chrono::steady_clock::now();
  const auto deadline = call.stage_.options().deadline;
  if (deadline.count() == 0) return;
  deadline_ = pipeline_.clock_.After(deadline, [this, expire] { (this->*expire)(); });
}

void PipelineCall::ExpireAnswer() {
  const Stage::Options& stage = calls_[asked_]->stage().options();
  Fail(
      DeadlineExceeded("stage {} did not answer within {} ms", stage.name, stage.deadline.count()));
}

void PipelineCall::ExpireHold() {
  StageCall& call = *calls_.back();
  const Stage::Options& stage = call.stage().options();
  pipeline_.NoteIgnoredFailure(
      call.stage(), DeadlineExceeded("stage {} held a reply for more than {} ms", stage.name,
                                     stage.deadline.count()));
  Release(call);
}

bool PipelineCall::ShowsAsked() const {
  if (phase_ != Phase::kForwarded || request_->operation() != Operation::kContainerStatus) {
    return false;
  }
  const auto is_file_of_shares = [](const FieldOwner& owner) {
    return owner.change.field == Field::kUnified &&
           MeaningOf(owner.change).field == Field::kCpuShares;
  };
  const bool in_file =
      !pipeline_.owners_.empty() &&
      std::ranges::any_of(pipeline_.owners_.Of(request_->container_id), is_file_of_shares);
  return std::ranges::any_of(
      calls_, [&](const auto& call) { return call->ShowsAsked(*request_, in_file); });
}

void PipelineCall::ShowAsked(CpuNumbers& reported) const {
  if (phase_ != Phase::kForwarded) return;
  for (const auto& call : calls_)
    call->ShowAsked(*request_, reported);
}

void PipelineCall::KeepOwners() {
  const Operation operation = request_->operation();
  if (operation == Operation::kRemoveContainer && outcome_.ok() && !pipeline_.owners_.empty()) {
    pipeline_.owners_.Forget(request_->container_id.value());
  }
  if ((owners_.empty() && left_out_.empty()) || !outcome_.ok()) return;
  const bool creates = operation == Operation::kCreateContainer;
  const std::string_view id = creates ? outcome_.id : request_->container_id.value();
  pipeline_.owners_.Add(id, std::move(owners_));
  pipeline_.owners_.AddLeftOut(id, std::move(left_out_));
}

}  // namespace resmgr
