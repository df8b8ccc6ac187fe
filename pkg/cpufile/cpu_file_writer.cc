// SPDX-License-Identifier: Apache-2.0
#include "pkg/cpufile/cpu_file_writer.h"

#include <utility>

namespace resmgr {
namespace {

// How long the daemon's end waits for work that has begun.
constexpr std::chrono::milliseconds kLastPatience{300};

}  // namespace

CpuFileWriter::CpuFileWriter(EventLoop& loop, std::string directory, Options options)
    : loop_(loop),
      options_(options),
      log_(GetLogger("cpu-files")),
      directory_(std::make_shared<CpuFileDirectory>(std::move(directory))),
      off_loop_(loop, "cpu-files", kLastPatience) {}

void CpuFileWriter::Make(const std::string& name, std::string text, Done done) {
  if (hangs()) {
    done(DeadlineExceeded("the disk of the CPU files does not answer"));
    return;
  }
  behind_.erase(name);
  waiting_.insert_or_assign(
      name, Job{.kind = Job::Kind::kMake, .text = std::move(text), .done = std::move(done)});
  Schedule();
}

void CpuFileWriter::Replace(const std::string& name, std::string text) {
  const auto waits = waiting_.find(name);
  if (waits != waiting_.end() && waits->second.kind == Job::Kind::kMake) {
    waits->second.text = std::move(text);
    return;
  }
  behind_.insert_or_assign(name, text);
  waiting_.insert_or_assign(name, Job{.kind = Job::Kind::kReplace, .text = std::move(text)});
  Schedule();
}

void CpuFileWriter::Remove(const std::string& name) {
  behind_.erase(name);
  waiting_.insert_or_assign(name, Job{.kind = Job::Kind::kRemove});
  Schedule();
}

void CpuFileWriter::List(Listed listed) {
  listed_ = std::move(listed);
  list_now_ = true;
  Schedule();
}

bool CpuFileWriter::hangs() const {
  return begun_ && loop_.Now() - *begun_ > options_.patience;
}

// Begins at the end of the loop's turn, since one decision often moves many containers.
void CpuFileWriter::Schedule() {
  if (begun_ || std::exchange(scheduled_, true)) return;
  loop_.Post(lifetime_.Guard([this] { Begin(); }));
}

void CpuFileWriter::Begin() {
  scheduled_ = false;
  if (begun_ || (waiting_.empty() && !list_now_)) return;
  const auto batch = std::make_shared<Batch>();
  batch->jobs = std::exchange(waiting_, {});
  batch->list = std::exchange(list_now_, false);
  begun_ = loop_.Now();
  const Status begun = off_loop_.Run([directory = directory_, batch, this]() -> EventLoop::Task {
    for (auto& [name, job] : batch->jobs) {
      switch (job.kind) {
        case Job::Kind::kMake:
          job.outcome = directory->Make(name, job.text);
          break;
        case Job::Kind::kReplace:
          job.outcome = directory->Replace(name, job.text);
          break;
        case Job::Kind::kRemove:
          job.outcome = directory->Remove(name);
          break;
      }
    }
    if (batch->list) batch->names = directory->List();
    return [batch, this] { Finish(*batch); };
  });
  if (begun.ok()) return;
  for (auto& [name, job] : batch->jobs)
    job.outcome = begun;
  batch->names = begun;
  Finish(*batch);
}

void CpuFileWriter::Finish(Batch& batch) {
  begun_.reset();
  for (auto& [name, job] : batch.jobs)
    FinishJob(name, job);
  if (batch.list) FinishList(batch.names);
  const bool all_done = behind_.empty() && listed_ == nullptr;
  if (all_done && std::exchange(failure_told_, false)) log_.Info("all CPU files are written again");
  if (!waiting_.empty() || list_now_) Schedule();
}

void CpuFileWriter::FinishJob(const std::string& name, Job& job) {
  if (job.kind == Job::Kind::kMake) return job.done(job.outcome);
  if (job.kind == Job::Kind::kRemove) {
    if (!job.outcome.ok())
      log_.Warn("cannot remove the CPU file of a container: {}", Describe(job.outcome));
    return;
  }
  const auto wanted = behind_.find(name);
  // A newer text for this file waits, or the file is no longer wanted.
  if (wanted == behind_.end() || waiting_.contains(name)) return;
  // If the container's directory is gone, it needs no file.
  if (job.outcome.ok() || job.outcome.code() == StatusCode::kNotFound) {
    behind_.erase(wanted);
    return;
  }
  if (!std::exchange(failure_told_, true)) {
    log_.Warn("the CPU file of a container is out of date, retrying: {}", Describe(job.outcome));
  }
  RetryLater();
}

void CpuFileWriter::FinishList(const StatusOr<std::vector<std::string>>& names) {
  if (names.ok()) {
    if (const Listed listed = std::exchange(listed_, nullptr)) listed(*names);
    return;
  }
  if (!std::exchange(failure_told_, true))
    log_.Warn("the CPU files of existing containers are not updated: {}", Describe(names.status()));
  RetryLater();
}

void CpuFileWriter::RetryLater() {
  if (retry_ != nullptr) return;
  retry_ = loop_.After(options_.retry, [this] {
    retry_.reset();
    for (const auto& [name, text] : behind_)
      waiting_.try_emplace(name, Job{.kind = Job::Kind::kReplace, .text = text});
    if (listed_ != nullptr) list_now_ = true;
    Schedule();
  });
}

}  // namespace resmgr
