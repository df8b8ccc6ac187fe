// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_store.h"

#include <utility>

namespace resmgr {
namespace {

constexpr std::chrono::seconds kLastWords{1};
// What is written survives this process. Only a machine that fails can lose it, and no container
// outlives that: so the disk, which others wait for too, is not made to hurry.
constexpr std::chrono::seconds kSyncWithin{1};
// After a failed write.
constexpr std::chrono::seconds kPause{1};

}  // namespace

StateStore::StateStore(FileSystem& files, const std::string& directory, const std::string& machine,
                       Report report, const std::string& calls)
    : report_(std::move(report)),
      open_calls_(files, calls.empty() ? directory + "/calls" : calls, report_),
      log_(files, directory, machine) {
  RecordLog::Found found = log_.Load();
  for (const std::string& complaint : found.complaints)
    report_(complaint);
  for (auto& [name, text] : found.records) {
    if (const auto saved = DecodeSaved(text); !saved.ok()) {
      report_(fmt::format("container {}: {}", name, Message(saved.status())));
      continue;
    }
    live_bytes_ += text.size();
    Insert(live_, std::make_shared<const Record>(name, text));
  }
  known_ = live_;
  thread_ = std::thread([this] { Run(); });
}

StateStore::~StateStore() {
  Flush(kLastWords);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::optional<SavedContainer> StateStore::Find(const ContainerId& id) const {
  const auto found = known_.find(id.value());
  if (found == known_.end()) return std::nullopt;
  StatusOr<SavedContainer> saved = DecodeSaved(found->second->text());
  if (!saved.ok()) return std::nullopt;
  return *std::move(saved);
}

// The map's keys are the records' own names: a record takes its key with it.
void StateStore::Insert(Records& records, RecordPtr record) {
  const std::string_view name = record->name();
  const auto [at, added] = records.try_emplace(name, record);
  if (added) return;
  records.erase(at);
  records.emplace(name, std::move(record));
}

void StateStore::Put(const ContainerId& id, const Container& container) {
  encoded_.clear();
  EncodeSaved(container, encoded_);
  if (id.value().size() > RecordLog::kMaxName || encoded_.size() > RecordLog::kMaxValue) {
    return report_(fmt::format("a container's state of {} bytes is too long to be saved",
                               id.value().size() + encoded_.size()));
  }
  const auto known = known_.find(id.value());
  if (known != known_.end() && known->second->text() == encoded_) return;
  const auto record = std::make_shared<const Record>(id.value(), encoded_);
  Insert(known_, record);
  gathered_.push_back({.record = record});
}

void StateStore::Erase(const ContainerId& id) {
  const auto known = known_.find(id.value());
  if (known == known_.end()) return;
  gathered_.push_back({.record = known->second, .gone = true});
  known_.erase(known);
}

void StateStore::Retain(const std::function<bool(std::string_view)>& wanted) {
  absl::erase_if(known_, [&](const Records::value_type& known) {
    if (wanted(known.first)) return false;
    gathered_.push_back({.record = known.second, .gone = true});
    return true;
  });
}

void StateStore::Commit() {
  if (gathered_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (changes_.empty()) {
      changes_.swap(gathered_);
    } else {
      changes_.insert(changes_.end(), gathered_.begin(), gathered_.end());
    }
  }
  gathered_.clear();
  wake_.notify_one();
}

bool StateStore::Flush(std::chrono::milliseconds timeout) {
  if (before_flush_) before_flush_();
  Commit();
  std::unique_lock lock(mutex_);
  ++flushes_;
  wake_.notify_one();
  const bool done = written_.wait_for(
      lock, timeout, [this] { return changes_.empty() && !writing_ && !behind_ && !sync_due_; });
  --flushes_;
  return done;
}

void StateStore::Run() {
  std::unique_lock lock(mutex_);
  const auto wanted = [this] {
    return ending_ || behind_ || !changes_.empty() || (sync_due_ && flushes_ > 0);
  };
  for (;;) {
    if (sync_due_) {
      wake_.wait_until(lock, *sync_due_, wanted);
    } else {
      wake_.wait(lock, wanted);
    }
    if (ending_) return;
    const std::vector<Change> changes = std::exchange(changes_, {});
    const auto now = std::chrono::steady_clock::now();
    const bool sync = sync_due_ && (flushes_ > 0 || now >= *sync_due_);
    writing_ = true;
    lock.unlock();
    const bool written = Write(changes, sync);
    lock.lock();
    writing_ = false;
    behind_ = !written;
    // A failed writing ends with a rewriting, which is synced.
    if (sync || behind_) {
      sync_due_.reset();
    } else if (!sync_due_) {
      sync_due_ = now + kSyncWithin;
    }
    if (behind_) wake_.wait_for(lock, kPause, [this] { return ending_; });
    written_.notify_all();
  }
}

// False when it has to be tried again.
bool StateStore::Write(const std::vector<Change>& changes, bool sync) {
  Status status;
  for (const auto& [record, gone] : changes) {
    const auto old = live_.find(record->name());
    if (old != live_.end()) live_bytes_ -= old->second->text().size();
    const bool append = status.ok() && log_.writable();
    if (!gone) {
      live_bytes_ += record->text().size();
      Insert(live_, record);
      if (append) status = log_.Put(record->name(), record->text());
    } else if (old != live_.end()) {
      live_.erase(old);
      if (append) status = log_.Erase(record->name());
    }
  }
  if (status.ok() && log_.writable()) status = sync ? log_.Sync() : log_.Write();
  if (!status.ok()) Complain(status);
  // Also the first time, and after an error.
  if (!log_.writable() || log_.WantsRewrite(live_bytes_)) {
    status = Rewrite();
    if (!status.ok()) {
      Complain(status);
      return false;
    }
  }
  complained_ = false;
  return true;
}

Status StateStore::Rewrite() {
  RecordLog::Views live;
  live.reserve(live_.size());
  for (const auto& [name, record] : live_)
    live.emplace_back(name, record->text());
  return log_.Rewrite(live);
}

void StateStore::Complain(const Status& status) {
  if (std::exchange(complained_, true)) return;
  report_(fmt::format("the state is not saved: {}", Message(status)));
}

}  // namespace resmgr
