// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/dumper.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/dump/recorder.h"
#include "pkg/dump/writer.h"
#include "pkg/sys/thread.h"

namespace resmgr::dump {

namespace {

// Limit of remembered methods, since paths come from clients.
constexpr size_t kRememberedMethods = 1024;

bool SameName(const std::string& a, const std::string& b) {
  return !a.empty() &&
         std::filesystem::path(a).lexically_normal() == std::filesystem::path(b).lexically_normal();
}

// Whether both paths lead to the same file. Looks at the disk, since parts of the paths may be
// links.
bool SamePlace(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code ignored;
  const auto place = [&ignored](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file, ignored), ignored);
  };
  return place(a) == place(b);
}

Status SameFileError(const std::string& path) {
  return InvalidArgument("dump and recording are the same file: {}", Printable(path));
}

bool Wants(const MethodPlan& plan, Event::Kind kind) {
  if (kind == Event::Kind::kChanged) return plan.target == Target::kFull;
  if (plan.record || plan.target == Target::kFull) return true;
  if (plan.target == Target::kName) return kind == Event::Kind::kEnd;
  return plan.target == Target::kCount && kind == Event::Kind::kRequest;
}

}  // namespace

StatusOr<Dumper::Settings> Dumper::Read(Options options) {
  Settings settings;
  RESMGR_ASSIGN_OR_RETURN(settings.rules, Rules::Parse(options.specs));
  settings.options = std::move(options);
  RESMGR_RETURN_IF_ERROR(CheckPlace(settings.file()));
  RESMGR_RETURN_IF_ERROR(CheckPlace(settings.recording()));
  if (SameName(settings.file().path, settings.recording().path)) {
    return SameFileError(settings.file().path);
  }
  return settings;
}

Status Dumper::Probe(const Settings& settings) {
  RESMGR_RETURN_IF_ERROR(ProbePlace(settings.file()));
  RESMGR_RETURN_IF_ERROR(ProbePlace(settings.recording()));
  if (SamePlace(settings.file().path, settings.recording().path)) {
    return SameFileError(settings.file().path);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Dumper>> Dumper::Create(Options options, const LogSink& log) {
  RESMGR_ASSIGN_OR_RETURN(Settings settings, Read(std::move(options)));
  std::unique_ptr<Dumper> dumper(new Dumper(settings.options, log));
  RESMGR_RETURN_IF_ERROR(dumper->Reconfigure(std::move(settings)));
  return dumper;
}

Dumper::Dumper(const Options& options, const LogSink& log)
    : writer_(std::make_shared<Writer>(options, log)), on_lost_(options.on_lost) {}

Dumper::~Dumper() {
  Close(std::chrono::seconds(1));
}

void Dumper::OnRequest(const CallRef& call, Payload message) {
  Report(call, {.kind = Event::Kind::kRequest, .payload = std::move(message)});
}

void Dumper::OnChanged(const CallRef& call, Payload before, std::string after) {
  Report(
      call,
      {.kind = Event::Kind::kChanged, .payload = std::move(before), .changed = std::move(after)});
}

void Dumper::OnReply(const CallRef& call, Payload message) {
  Report(call, {.kind = Event::Kind::kReply, .payload = std::move(message)});
}

void Dumper::OnEnd(const CallRef& call, int code, std::string_view message) {
  Report(call, {.kind = Event::Kind::kEnd, .code = code, .message = std::string(message)});
}

Status Dumper::Reconfigure(Settings settings) {
  const std::lock_guard lock(mutex_);
  if (closed_) return FailedPrecondition("the dump has ended");
  settings_ = std::move(settings);
  rules_in_force_ = settings_.rules.customized() || !settings_.options.file.empty();
  plans_.clear();
  if (Status begun = UpdateActiveLocked(); !begun.ok()) {
    settings_ = Settings();
    rules_in_force_ = false;
    return begun;
  }
  recording_.store(settings_.recording().path.empty() ? 0 : ++last_recording_,
                   std::memory_order_relaxed);
  if (!thread_.joinable()) return OkStatus();
  writer_->queue().PushSettings({.kind = Event::Kind::kSettings,
                                 .settings = std::make_unique<WriterSettings>(WriterSettings{
                                     .show_secrets = settings_.options.show_secrets,
                                     .count_period = settings_.options.count_period,
                                     .file = settings_.file(),
                                     .recording = settings_.recording(),
                                     .recording_start = std::chrono::steady_clock::now(),
                                     .recording_wall_start = std::chrono::system_clock::now()})});
  return OkStatus();
}

Status Dumper::UpdateActiveLocked() {
  const bool active = rules_in_force_ || !settings_.recording().path.empty() || trace_ != nullptr;
  const Status started = active ? StartWriterLocked() : OkStatus();
  active_.store(active && started.ok(), std::memory_order_relaxed);
  return started;
}

Status Dumper::Trace(std::shared_ptr<PodTrace> trace) {
  const std::lock_guard lock(mutex_);
  if (closed_) return FailedPrecondition("the dump has ended");
  trace_ = std::move(trace);
  Status begun = UpdateActiveLocked();
  if (!begun.ok()) trace_ = nullptr;
  return begun;
}

bool Dumper::RecordUse(std::vector<RecordedUse> use) {
  if (recording() == 0) return true;
  Event event{
      .kind = Event::Kind::kUse, .at = std::chrono::steady_clock::now(), .use = std::move(use)};
  if (writer_->queue().PushUse(std::move(event))) return true;
  writer_->NoteLoss();
  if (on_lost_) on_lost_();
  return false;
}

bool Dumper::Close(std::chrono::milliseconds deadline) {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    active_.store(false, std::memory_order_relaxed);
    thread = std::move(thread_);
  }
  if (!thread.joinable()) return true;
  writer_->queue().Close();
  if (writer_->queue().WaitFinished(deadline)) {
    thread.join();
    return true;
  }
  // The thread hangs in a write, which cannot be interrupted.
  writer_->queue().Abandon();
  thread.detach();
  return false;
}

Interest Dumper::LookUpInterest(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const MethodPlan> plan = PlanLocked(path);
  if (trace_ != nullptr || plan->record || plan->target == Target::kFull) {
    return Interest::kMessages;
  }
  return plan->target == Target::kOff ? Interest::kNone : Interest::kCalls;
}

std::shared_ptr<const MethodPlan> Dumper::PlanLocked(std::string_view path) {
  if (const auto found = plans_.find(path); found != plans_.end()) return found->second;
  auto plan = std::make_shared<MethodPlan>();
  const std::string_view method = MethodName(path);
  plan->name = Printable(method);
  plan->types = FindMethodTypes(path);
  if (rules_in_force_) plan->target = settings_.rules.Lookup(method);
  plan->record = !settings_.rules.record_file().empty() && IsRecorded(plan->types);
  if (plans_.size() < kRememberedMethods) plans_.emplace(path, plan);
  return plan;
}

void Dumper::Report(const CallRef& call, Event event) {
  if (!active_.load(std::memory_order_relaxed)) return;
  event.call = call.id;
  event.intercepted = call.intercepted;
  event.wall_start = call.wall_start;
  event.start = call.start;
  event.at = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  event.plan = PlanLocked(call.path);
  event.trace = trace_;
  if (event.trace == nullptr && !Wants(*event.plan, event.kind)) return;
  if (!writer_->queue().Push(std::move(event))) CountLostCall();
}

bool Dumper::Reserve(size_t bytes) {
  return writer_->queue().Reserve(bytes);
}

void Dumper::Release(size_t bytes) {
  writer_->queue().Release(bytes);
}

void Dumper::GiveUp(const CallRef& call, bool request_reported) {
  if (!active_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (writer_->queue().Lose({.kind = request_reported ? Event::Kind::kReply : Event::Kind::kRequest,
                             .call = call.id,
                             .plan = PlanLocked(call.path)})) {
    CountLostCall();
  }
}

uint64_t Dumper::recording() const {
  const uint64_t recording = recording_.load(std::memory_order_relaxed);
  return recording == 0 ? 0 : recording + writer_->gaps();
}

bool Dumper::losing() const {
  return writer_->losing();
}

bool Dumper::failing() const {
  return active_.load(std::memory_order_relaxed) && writer_->failing();
}

void Dumper::CountLostCall() {
  if (trace_ != nullptr) trace_->NoteLostCall();
  CountLost();
}

void Dumper::CountLost() {
  writer_->NoteLoss();
  lost_calls_.fetch_add(1, std::memory_order_relaxed);
  if (on_lost_) on_lost_();
}

Status Dumper::StartWriterLocked() {
  if (thread_.joinable()) return OkStatus();
  try {
    thread_ = StartThread("dump", [writer = writer_] { writer->Run(); });
  } catch (const std::system_error& error) {
    return Unavailable("no thread can be made: {}", error.code().message());
  }
  return OkStatus();
}

}  // namespace resmgr::dump
