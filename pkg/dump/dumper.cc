// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/dumper.h"

#include <csignal>
#include <filesystem>
#include <optional>
#include <utility>

#include <pthread.h>

#include "pkg/base/parse.h"
#include "pkg/dump/recorder.h"

namespace resmgr::dump {

namespace {

// Paths come from clients: no more of them than this are remembered.
constexpr size_t kRememberedMethods = 1024;

// The thread leaves signals to the others.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

bool SameFile(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code ignored;
  const auto place = [&ignored](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file, ignored), ignored);
  };
  return a == b || place(a) == place(b);
}

bool Wants(const MethodPlan& plan, Event::Kind kind) {
  if (plan.record || plan.target == Target::kFull) return true;
  if (plan.target == Target::kName) return kind == Event::Kind::kEnd;
  return plan.target == Target::kCount && kind == Event::Kind::kRequest;
}

}  // namespace

// What the thread works with.
struct Dumper::Writer {
  Writer(EventQueue::Limits limits, const LogSink& sink) : queue(limits), log(sink), text(sink) {}

  void Run();
  void Write(Event& event);
  void Apply(WriterSettings& settings);
  void Flush();
  void Report(const OutputFile& file, const Status& status);

  EventQueue queue;
  const LogSink log;
  TextDump text;
  std::optional<Recorder> recorder;
};

void Dumper::Writer::Run() {
  for (;;) {
    std::optional<Event> event = queue.TryPop();
    if (!event) {
      Flush();
      event = queue.Pop();
    }
    if (!event) break;
    Write(*event);
  }
  Flush();
  queue.Finish();
}

void Dumper::Writer::Write(Event& event) {
  const bool record = recorder && event.plan && event.plan->record;
  switch (event.kind) {
    case Event::Kind::kRequest:
      text.Request(event);
      if (record) recorder->Request(event);
      break;
    case Event::Kind::kReply:
      text.Reply(event);
      if (record) recorder->Reply(event);
      break;
    case Event::Kind::kEnd:
      text.End(event);
      if (record) recorder->End(event);
      break;
    case Event::Kind::kLost:
      text.Lost(event);
      if (recorder) recorder->Lost(event);
      break;
    case Event::Kind::kSettings:
      Apply(*event.settings);
      break;
  }
}

void Dumper::Writer::Apply(WriterSettings& settings) {
  Flush();
  text.set_show_secrets(settings.show_secrets);
  text.set_count_period(settings.count_period);
  if (settings.replace_file) text.set_file(std::move(settings.file));
  if (settings.replace_recording) {
    recorder.reset();
    if (settings.recording != nullptr) {
      recorder.emplace(std::move(settings.recording), settings.recording_start,
                       settings.recording_wall_start);
    }
  }
}

void Dumper::Writer::Flush() {
  if (text.file() != nullptr) Report(*text.file(), text.file()->Flush());
  if (recorder) Report(recorder->file(), recorder->file().Flush());
}

void Dumper::Writer::Report(const OutputFile& file, const Status& status) {
  if (status.ok()) return;
  log(true,
      fmt::format("cannot write '{}', nothing more goes to it: {}", file.path(), Message(status)));
}

StatusOr<std::unique_ptr<Dumper>> Dumper::Create(Options options, const LogSink& log) {
  std::unique_ptr<Dumper> dumper(new Dumper(options, log));
  RESMGR_RETURN_IF_ERROR(dumper->Reconfigure(std::move(options)));
  return dumper;
}

Dumper::Dumper(const Options& options, const LogSink& log)
    : writer_(std::make_shared<Writer>(
          EventQueue::Limits{options.queue_events, options.queue_bytes}, log)),
      on_lost_(options.on_lost) {}

Dumper::~Dumper() {
  Close(std::chrono::seconds(1));
}

void Dumper::OnRequest(const CallRef& call, Payload message) {
  Event event;
  event.kind = Event::Kind::kRequest;
  event.payload = std::move(message);
  Report(call, std::move(event));
}

void Dumper::OnReply(const CallRef& call, Payload message) {
  Event event;
  event.kind = Event::Kind::kReply;
  event.payload = std::move(message);
  Report(call, std::move(event));
}

void Dumper::OnEnd(const CallRef& call, int code, std::string_view message) {
  Event event;
  event.kind = Event::Kind::kEnd;
  event.code = code;
  event.message = message;
  Report(call, std::move(event));
}

Status Dumper::Reconfigure(Options options) {
  RESMGR_ASSIGN_OR_RETURN(Rules rules, Rules::Parse(options.specs));
  const std::lock_guard lock(mutex_);
  if (closed_) return FailedPrecondition("the dump has ended");
  if (SameFile(options.file, rules.record_file())) {
    return InvalidArgument("dump and recording are the same file: {}", Printable(options.file));
  }
  auto settings = std::make_unique<WriterSettings>();
  settings->show_secrets = options.show_secrets;
  settings->count_period = options.count_period;
  settings->replace_file = options.file != options_.file;
  if (settings->replace_file && !options.file.empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings->file, OutputFile::Create(options.file));
  }
  settings->replace_recording = rules.record_file() != rules_.record_file();
  if (settings->replace_recording && !rules.record_file().empty()) {
    RESMGR_ASSIGN_OR_RETURN(settings->recording, OutputFile::Create(rules.record_file()));
    settings->recording_start = std::chrono::steady_clock::now();
    settings->recording_wall_start = std::chrono::system_clock::now();
  }
  rules_in_force_ = rules.customized() || !options.file.empty();
  options_ = std::move(options);
  rules_ = std::move(rules);
  plans_.clear();
  const bool active = rules_in_force_ || !rules_.record_file().empty();
  active_.store(active, std::memory_order_relaxed);
  if (active) StartWriterLocked();
  Event event;
  event.kind = Event::Kind::kSettings;
  event.settings = std::move(settings);
  if (thread_.joinable()) writer_->queue.PushSettings(std::move(event));
  return OkStatus();
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
  writer_->queue.Close();
  if (writer_->queue.WaitFinished(deadline)) {
    thread.join();
    return true;
  }
  // Stuck in a write: nothing can wake it, and nobody waits for it.
  writer_->queue.Abandon();
  thread.detach();
  return false;
}

Interest Dumper::LookUpInterest(std::string_view path) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const MethodPlan> plan = PlanLocked(path);
  if (plan->record || plan->target == Target::kFull) return Interest::kMessages;
  return plan->target == Target::kOff ? Interest::kNone : Interest::kCalls;
}

std::shared_ptr<const MethodPlan> Dumper::PlanLocked(std::string_view path) {
  if (const auto found = plans_.find(path); found != plans_.end()) return found->second;
  auto plan = std::make_shared<MethodPlan>();
  const std::string_view method = MethodName(path);
  plan->name = Printable(method);
  plan->types = FindMethodTypes(path);
  if (rules_in_force_) plan->target = rules_.Lookup(method);
  plan->record =
      !rules_.record_file().empty() && plan->types.request != nullptr && IsRecorded(method);
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
  if (!Wants(*event.plan, event.kind)) return;
  if (!writer_->queue.Push(std::move(event)) && on_lost_) on_lost_();
}

void Dumper::StartWriterLocked() {
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([writer = writer_] { writer->Run(); });
  pthread_setname_np(thread_.native_handle(), "dump");
}

}  // namespace resmgr::dump
