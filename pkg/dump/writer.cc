// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/writer.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/amount_text.h"
#include "pkg/dump/pod_trace.h"

namespace resmgr::dump {

Writer::Writer(const Dumper::Options& options, const LogSink& log)
    : queue_({options.queue_events, options.queue_bytes}),
      log_(log),
      open_(options.open),
      decompress_(options.decompress),
      retry_pause_(options.retry_pause),
      text_(log) {}

void Writer::Run() {
  for (;;) {
    std::optional<Event> event = queue_.TryPop();
    if (!event) {
      Flush();
      FollowMoves();
      losing_ = false;
      event = queue_.Pop(next_try_);
    }
    if (event) Write(*event);
    if (!event && queue_.ended()) break;
    if (next_try_ && Clock::now() >= *next_try_) OpenMissing();
  }
  Flush();
  queue_.Finish();
}

void Writer::Decompress(Payload& payload) const {
  if (!payload.compressed || payload.truncated() || !decompress_) return;
  if (auto plain = decompress_(payload); plain.ok()) payload = Payload(*std::move(plain));
}

void Writer::Write(Event& event) {
  Decompress(event.payload);
  if (event.trace != nullptr) event.trace->Take(event);
  if (event.kind == Event::Kind::kSettings) return Apply(*event.settings);
  text_.Take(event);
  if (event.lost_use > 0) {
    log_(true, fmt::format("the recording fell behind: {} missing that tell what containers use",
                           CountIs(static_cast<int64_t>(event.lost_use), "line")));
  }
  // Losses and lines of use belong to no call, and have no plan.
  if (recorder_ && (event.plan == nullptr || event.plan->record)) recorder_->Take(event);
}

void Writer::Apply(const WriterSettings& settings) {
  Flush();
  text_.set_show_secrets(settings.show_secrets);
  text_.set_count_period(settings.count_period);
  if (settings.file != file_.place) {
    text_.set_file(nullptr);
    file_ = {.place = settings.file};
  }
  if (settings.recording != recording_.place) {
    recorder_.reset();
    recording_ = {.place = settings.recording};
    recording_start_ = settings.recording_start;
    recording_wall_start_ = settings.recording_wall_start;
  }
  OpenMissing();
}

// Files that were renamed or removed, as when logs are rotated, are made anew: what is written to
// them would be lost, and the disk would fill up unseen.
void Writer::FollowMoves() {
  file_.open = file_.open && !(text_.file() != nullptr && text_.file()->IsMoved());
  recording_.open = recording_.open && !(recorder_ && recorder_->file().IsMoved());
  const bool moved =
      (text_.file() != nullptr && file_.missing()) || (recorder_ && recording_.missing());
  if (moved) OpenMissing();
}

void Writer::OpenMissing() {
  if (file_.missing()) text_.set_file(Open(file_));
  if (recording_.missing()) Record(Open(recording_));
  NoteFiles();
  next_try_.reset();
  if (file_.missing() || recording_.missing()) next_try_ = Clock::now() + retry_pause_;
}

void Writer::Record(std::unique_ptr<OutputFile> file) {
  const bool same = file != nullptr && text_.file() != nullptr && file->SameAs(*text_.file());
  if (same) {
    log_(true, fmt::format("nothing is recorded: '{}' and '{}' are the same file", file->path(),
                           text_.file()->path()));
  }
  if (file == nullptr || same) return recorder_.reset();
  if (std::exchange(recording_.begun, true)) gaps_.fetch_add(1, std::memory_order_relaxed);
  if (recorder_) return recorder_->ContinueIn(std::move(file));
  recorder_.emplace(std::move(file), recording_start_, recording_wall_start_, gaps_);
}

std::unique_ptr<OutputFile> Writer::Open(Wanted& wanted) {
  StatusOr<std::unique_ptr<OutputFile>> file = open_(wanted.place);
  wanted.open = file.ok();
  if (file.ok()) wanted.reported = false;
  if (file.ok()) return *std::move(file);
  if (!std::exchange(wanted.reported, true)) {
    log_(true, fmt::format("{}; retrying, lines are lost until then", Message(file.status())));
  }
  return nullptr;
}

void Writer::Flush() {
  if (text_.file() != nullptr) Report(*text_.file(), text_.file()->Flush());
  if (recorder_) Report(recorder_->file(), recorder_->file().Flush());
  NoteFiles();
}

void Writer::NoteFiles() {
  failing_ = file_.missing() || recording_.missing() ||
             (text_.file() != nullptr && text_.file()->failing()) ||
             (recorder_ && recorder_->file().failing());
}

void Writer::Report(const OutputFile& file, const Status& status) {
  if (status.ok()) return;
  log_(true, fmt::format("cannot write '{}', what goes there is lost until it can be: {}",
                         file.path(), Message(status)));
}

}  // namespace resmgr::dump
