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
    std::string entry;
    AppendEntry(EntryKind::kPut, name, text, entry);
    live_bytes_ += entry.size();
    records_.insert(Record(entry));
  }
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
  const auto found = records_.find(id.value());
  if (found == records_.end()) return std::nullopt;
  StatusOr<SavedContainer> saved = DecodeSaved(found->value());
  if (!saved.ok()) return std::nullopt;
  return *std::move(saved);
}

void StateStore::Put(const ContainerId& id, const Container& container, QosClass qos) {
  const std::string_view name = id.value();
  const size_t begin = BeginEntry(EntryKind::kPut, name, gathered_);
  EncodeSaved(container, qos, gathered_);
  EndEntry(begin, gathered_);
  const auto entry = std::string_view(gathered_).substr(begin);
  if (name.size() > kMaxEntryName || entry.size() > kMaxEntryValue) {
    report_(fmt::format("a container's state of {} bytes is too long to be saved", entry.size()));
    return gathered_.resize(begin);
  }
  const std::lock_guard lock(mutex_);
  bool added = false;
  const auto at = records_.lazy_emplace(name, [&](const Records::constructor& construct) {
    construct(entry);
    added = true;
  });
  if (!added) {
    if (at->entry() == entry) return gathered_.resize(begin);
    live_bytes_ -= at->entry().size();
    records_.erase(at);
    records_.insert(Record(entry));
  }
  live_bytes_ += entry.size();
}

void StateStore::Erase(const ContainerId& id) {
  const auto found = records_.find(id.value());
  if (found == records_.end()) return;
  AppendEntry(EntryKind::kErase, id.value(), "", gathered_);
  const std::lock_guard lock(mutex_);
  live_bytes_ -= found->entry().size();
  records_.erase(found);
}

void StateStore::Retain(const std::function<bool(std::string_view)>& wanted) {
  const std::lock_guard lock(mutex_);
  absl::erase_if(records_, [&](const Record& record) {
    if (wanted(record.name())) return false;
    AppendEntry(EntryKind::kErase, record.name(), "", gathered_);
    live_bytes_ -= record.entry().size();
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
      changes_ += gathered_;
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
  std::string changes;
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
    // The memory comes back to be filled again.
    changes.clear();
    changes.swap(changes_);
    const size_t live_bytes = live_bytes_;
    const auto now = std::chrono::steady_clock::now();
    const bool sync = sync_due_ && (flushes_ > 0 || now >= *sync_due_);
    writing_ = true;
    lock.unlock();
    const bool written = Write(changes, live_bytes, sync);
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
bool StateStore::Write(std::string_view changes, size_t live_bytes, bool sync) {
  Status status;
  if (log_.writable()) {
    status = log_.Append(changes);
    if (status.ok() && sync) status = log_.Sync();
    if (!status.ok()) Complain(status);
  }
  // Also the first time, and after an error.
  if (!log_.writable() || log_.WantsRewrite(live_bytes)) {
    status = log_.Rewrite(TakeAll());
    if (!status.ok()) {
      Complain(status);
      return false;
    }
  }
  complained_ = false;
  return true;
}

std::string StateStore::TakeAll() {
  const std::lock_guard lock(mutex_);
  std::string all;
  all.reserve(live_bytes_);
  for (const Record& record : records_)
    all += record.entry();
  changes_.clear();
  return all;
}

void StateStore::Complain(const Status& status) {
  if (std::exchange(complained_, true)) return;
  report_(fmt::format("the state is not saved: {}", Message(status)));
}

}  // namespace resmgr
