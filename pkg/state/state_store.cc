// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_store.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "pkg/state/record_log.h"
#include "pkg/sys/thread.h"

namespace resmgr {
namespace {

// Written data survives this process. Only a crash of the machine can lose it, and then the
// containers are lost, too: so syncs are rare, since others also wait for the disk.
constexpr std::chrono::seconds kSyncWithin{1};
// The pause after a failed write.
constexpr std::chrono::seconds kWritePause{1};
constexpr std::chrono::milliseconds kEndAtOnce{100};
// A write that takes longer means that the disk does not work.
constexpr std::chrono::seconds kSlowWriting{5};

// Prefix of the names of notes, which no container id has.
constexpr std::string_view kOfPod = "pod/";

// "pod/h/ID"
std::string NoteName(StateStore::PodNote kind, std::string_view id) {
  return fmt::format("{}{}/{}", kOfPod, static_cast<char>(kind), id);
}

// The id in a note's name; empty if the note is of another kind.
std::string_view IdOfNote(StateStore::PodNote kind, std::string_view name) {
  const size_t begin = kOfPod.size() + 2;
  if (name.size() <= begin || name[kOfPod.size()] != static_cast<char>(kind)) return {};
  return name.substr(begin);
}

}  // namespace

// Data shared by the loop and the thread that writes.
struct StateStore::Shared {
  Shared(FileSystem& files, const std::string& directory, const StateLabel& machine)
      : log(files, directory, machine) {}

  void Run();
  void Load();
  void Take(const RecordLog::Records& found);
  bool Write(std::string_view batch, size_t live, bool sync);
  void TellWritten(std::vector<std::function<void()>>& waiting);
  void Count(const Status& status, size_t size);
  // Returns the entries of all records, and drops the unwritten changes, which they include. Called
  // by the thread.
  std::string TakeAll();
  void Complain(const Status& status);
  bool idle() const { return changes.empty() && !writing && !behind; }

  // Only the thread uses these.
  RecordLog log;
  bool complained = false;

  // Only the thread changes these.
  std::atomic<uint64_t> writes = 0;
  std::atomic<uint64_t> failures = 0;
  std::atomic<uint64_t> bytes = 0;

  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable written;
  Report report;  // nullptr: the store is closed
  Records records;
  Records notes;
  size_t live_bytes = 0;  // bytes of the entries of records and notes
  bool loaded = false;
  bool waits_for_load = true;
  std::string changes;                              // entries that are to be written
  std::vector<std::function<void()>> when_written;  // called when `changes` are written
  bool writing = false;
  std::chrono::steady_clock::time_point writing_since;
  bool behind = false;  // the last writing failed: the disk lacks some of the records
  std::optional<std::chrono::steady_clock::time_point> sync_due;  // written, not yet durable
  bool ending = false;
  bool ended = false;
};

StateStore::StateStore(FileSystem& files, const std::string& directory, const StateLabel& machine,
                       Report report, const std::string& calls, std::chrono::milliseconds patience)
    : report_(std::move(report)),
      open_calls_(files, calls.empty() ? directory + "/calls" : calls, report_),
      shared_(std::make_shared<Shared>(files, directory, machine)),
      records_(shared_->records),
      notes_(shared_->notes) {
  shared_->report = report_;
  thread_ = StartThread("state", [shared = shared_] { shared->Run(); });
  std::unique_lock lock(shared_->mutex);
  shared_->written.wait_for(lock, patience, [this] { return shared_->loaded; });
  shared_->waits_for_load = false;
  if (shared_->loaded) return;
  // The disk has an older state, so everything must be written anew.
  shared_->behind = true;
  report_("the saved state is ignored: its disk does not answer");
}

StateStore::~StateStore() {
  Close(kLastWords);
}

bool StateStore::Close(std::chrono::milliseconds timeout) {
  if (!thread_.joinable()) return true;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Flush(timeout);
  std::unique_lock lock(shared_->mutex);
  shared_->ending = true;
  shared_->wake.notify_all();
  // Even without time left: a thread that only waits for its next try can end at once.
  const auto until = std::max(deadline, std::chrono::steady_clock::now() + kEndAtOnce);
  const bool ended = shared_->written.wait_until(lock, until, [this] { return shared_->ended; });
  shared_->report = nullptr;
  lock.unlock();
  if (ended) {
    thread_.join();
    return true;
  }
  // The thread hangs on the disk and cannot be ended, so it is left behind.
  report_("the state is not saved: its disk does not answer");
  thread_.detach();
  return false;
}

std::optional<SavedContainer> StateStore::Find(const ContainerId& id) const {
  const auto found = records_.find(id.value());
  if (found == records_.end()) return std::nullopt;
  StatusOr<SavedContainer> saved = DecodeSaved(found->value());
  if (!saved.ok()) return std::nullopt;
  return *std::move(saved);
}

void StateStore::ForEach(
    const std::function<void(std::string_view id, const SavedContainer& saved)>& visit) const {
  for (const Record& record : records_) {
    const StatusOr<SavedContainer> saved = DecodeSaved(record.value());
    if (saved.ok()) visit(record.name(), *saved);
  }
}

void StateStore::Put(const ContainerId& id, const Container& container, QosClass qos,
                     const SavedExtras& extras) {
  const std::string_view name = id.value();
  const size_t begin = BeginEntry(EntryKind::kPut, name, gathered_);
  EncodeSaved(container, qos, gathered_, extras);
  EndEntry(begin, gathered_);
  Replace(records_, name, begin);
}

void StateStore::Replace(Records& records, std::string_view name, size_t begin) {
  const auto entry = std::string_view(gathered_).substr(begin);
  if (name.size() > kMaxEntryName || entry.size() > kMaxEntryValue) {
    report_(fmt::format("a container's state of {} bytes is too long to be saved", entry.size()));
    return gathered_.resize(begin);
  }
  const std::lock_guard lock(shared_->mutex);
  bool added = false;
  const auto at = records.lazy_emplace(name, [&](const Records::constructor& construct) {
    construct(entry);
    added = true;
  });
  if (!added) {
    if (at->entry() == entry) return gathered_.resize(begin);
    shared_->live_bytes -= at->entry().size();
    records.erase(at);
    records.insert(Record(entry));
  }
  shared_->live_bytes += entry.size();
}

void StateStore::Erase(const ContainerId& id) {
  EraseFrom(records_, id.value());
}

void StateStore::EraseFrom(Records& records, std::string_view name) {
  const auto found = records.find(name);
  if (found == records.end()) return;
  AppendEntry(EntryKind::kErase, name, "", gathered_);
  const std::lock_guard lock(shared_->mutex);
  shared_->live_bytes -= found->entry().size();
  records.erase(found);
}

void StateStore::Retain(const std::function<bool(std::string_view)>& wanted) {
  RetainIn(records_, wanted);
}

void StateStore::RetainIn(Records& records, const std::function<bool(std::string_view)>& wanted) {
  const std::lock_guard lock(shared_->mutex);
  absl::erase_if(records, [&](const Record& record) {
    if (wanted(record.name())) return false;
    AppendEntry(EntryKind::kErase, record.name(), "", gathered_);
    shared_->live_bytes -= record.entry().size();
    return true;
  });
}

std::optional<std::string> StateStore::FindNote(PodNote kind, const PodSandboxId& id) const {
  if (notes_.empty()) return std::nullopt;
  const auto found = notes_.find(NoteName(kind, id.value()));
  if (found == notes_.end()) return std::nullopt;
  return std::string(found->value());
}

void StateStore::PutNote(PodNote kind, const PodSandboxId& id, std::string_view text) {
  const std::string name = NoteName(kind, id.value());
  const size_t begin = gathered_.size();
  AppendEntry(EntryKind::kPut, name, text, gathered_);
  Replace(notes_, name, begin);
}

void StateStore::EraseNote(PodNote kind, const PodSandboxId& id) {
  if (!notes_.empty()) EraseFrom(notes_, NoteName(kind, id.value()));
}

void StateStore::ForEachNote(
    PodNote kind,
    const std::function<void(std::string_view id, std::string_view text)>& visit) const {
  for (const Record& note : notes_) {
    const std::string_view id = IdOfNote(kind, note.name());
    if (!id.empty()) visit(id, note.value());
  }
}

void StateStore::RetainNotes(PodNote kind, const std::function<bool(std::string_view)>& wanted) {
  if (notes_.empty()) return;
  RetainIn(notes_, [kind, &wanted](std::string_view name) {
    const std::string_view id = IdOfNote(kind, name);
    return id.empty() || wanted(id);
  });
}

void StateStore::Commit() {
  if (gathered_.empty()) return;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->changes.empty()) {
      shared_->changes.swap(gathered_);
    } else {
      shared_->changes += gathered_;
    }
  }
  gathered_.clear();
  shared_->wake.notify_one();
}

bool StateStore::Flush(std::chrono::milliseconds timeout) {
  if (before_flush_) before_flush_();
  Commit();
  std::unique_lock lock(shared_->mutex);
  return shared_->written.wait_for(lock, timeout, [this] { return shared_->idle(); });
}

void StateStore::WhenWritten(std::function<void()> written) {
  Commit();
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->idle()) {
      shared_->when_written.push_back(std::move(written));
      shared_->wake.notify_one();
      return;
    }
  }
  written();
}

bool StateStore::Saved() {
  const std::lock_guard lock(shared_->mutex);
  const auto now = std::chrono::steady_clock::now();
  const bool slow = shared_->writing && now - shared_->writing_since > kSlowWriting;
  return !shared_->behind && !slow;
}

void StateStore::Shared::Load() {
  RecordLog::Found found = log.Load();
  const std::lock_guard lock(mutex);
  if (waits_for_load) {
    for (const std::string& complaint : found.complaints)
      report(complaint);
    Take(found.records);
  }
  loaded = true;
  written.notify_all();
}

void StateStore::Shared::Take(const RecordLog::Records& found) {
  for (const auto& [name, text] : found) {
    const bool of_pod = name.starts_with(kOfPod);
    if (const Status status = of_pod ? OkStatus() : DecodeSaved(text).status(); !status.ok()) {
      report(fmt::format("container {}: {}", name, Message(status)));
      continue;
    }
    std::string entry;
    AppendEntry(EntryKind::kPut, name, text, entry);
    live_bytes += entry.size();
    (of_pod ? notes : records).insert(Record(entry));
  }
}

void StateStore::Shared::Run() {
  Load();
  std::string batch;
  std::unique_lock lock(mutex);
  const auto wanted = [this] {
    return ending || behind || !changes.empty() || !when_written.empty();
  };
  for (;;) {
    if (sync_due) {
      wake.wait_until(lock, *sync_due, wanted);
    } else {
      wake.wait(lock, wanted);
    }
    if (ending) break;
    // Batch and changes are swapped, so that their memory is used again.
    batch.clear();
    batch.swap(changes);
    std::vector<std::function<void()>> waiting = std::exchange(when_written, {});
    const size_t live = live_bytes;
    const auto now = std::chrono::steady_clock::now();
    const bool sync = sync_due && now >= *sync_due;
    writing = true;
    writing_since = now;
    lock.unlock();
    const bool done = Write(batch, live, sync);
    lock.lock();
    writing = false;
    behind = !done;
    if (done) {
      TellWritten(waiting);
    } else {
      when_written.insert(when_written.begin(), waiting.begin(), waiting.end());
    }
    // No sync is due after a failure either, since the rewriting that follows it is synced.
    if (sync || behind) {
      sync_due.reset();
    } else if (!sync_due) {
      sync_due = now + kSyncWithin;
    }
    if (behind) wake.wait_for(lock, kWritePause, [this] { return ending; });
    written.notify_all();
  }
  ended = true;
  written.notify_all();
}

// Called with the mutex held. After Close nothing is reported any more.
void StateStore::Shared::TellWritten(std::vector<std::function<void()>>& waiting) {
  if (report == nullptr) return;
  for (const std::function<void()>& tell : waiting)
    tell();
}

// Returns false if the write has to be repeated.
bool StateStore::Shared::Write(std::string_view batch, size_t live, bool sync) {
  if (log.writable()) {
    Status status = log.Append(batch);
    if (status.ok() && sync) status = log.Sync();
    Count(status, batch.size());
    if (!status.ok()) Complain(status);
  }
  // Also true before the first write and after an error.
  if (!log.writable() || log.WantsRewrite(live)) {
    const std::string all = TakeAll();
    const Status status = log.Rewrite(all);
    Count(status, all.size());
    if (!status.ok()) {
      Complain(status);
      return false;
    }
  }
  complained = false;
  return true;
}

void StateStore::Shared::Count(const Status& status, size_t size) {
  if (status.ok()) {
    // A batch without changes was only a sync.
    if (size > 0) ++writes;
    bytes += size;
  } else {
    ++failures;
  }
}

StateStore::Written StateStore::written() const {
  return {.writes = shared_->writes, .failures = shared_->failures, .bytes = shared_->bytes};
}

std::string StateStore::Shared::TakeAll() {
  const std::lock_guard lock(mutex);
  std::string all;
  all.reserve(live_bytes);
  for (const Records* const kept : {&records, &notes}) {
    for (const Record& record : *kept)
      all += record.entry();
  }
  changes.clear();
  return all;
}

void StateStore::Shared::Complain(const Status& status) {
  if (std::exchange(complained, true)) return;
  const std::lock_guard lock(mutex);
  if (report) report(fmt::format("the state is not saved: {}", Message(status)));
}

}  // namespace resmgr
