// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_store.h"

#include <utility>

namespace resmgr {
namespace {

constexpr std::chrono::seconds kLastWords{1};
// Changes come in bursts, which are written and synced together. A container runs no sooner than
// this after it was created.
constexpr std::chrono::milliseconds kGather{20};
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
    StatusOr<SavedContainer> saved = DecodeSaved(text);
    if (!saved.ok()) {
      report_(fmt::format("container {}: {}", name, Message(saved.status())));
      continue;
    }
    known_.emplace(ContainerId(name), *std::move(saved));
    live_bytes_ += text.size();
    live_.emplace(name, std::move(text));
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

const SavedContainer* StateStore::Find(const ContainerId& id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second;
}

void StateStore::Put(const ContainerId& id, const Container& container) {
  const auto [known, added] = known_.try_emplace(id);
  if (!added && Matches(known->second, container)) return;
  known->second = ToSaved(container);
  Queue(id, EncodeSaved(known->second));
}

void StateStore::Erase(const ContainerId& id) {
  if (known_.erase(id) > 0) Queue(id, std::nullopt);
}

void StateStore::Retain(const std::function<bool(const ContainerId&)>& wanted) {
  for (auto it = known_.begin(); it != known_.end();) {
    if (wanted(it->first)) {
      ++it;
      continue;
    }
    Queue(it->first, std::nullopt);
    it = known_.erase(it);
  }
}

void StateStore::Queue(const ContainerId& id, std::optional<std::string> text) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = changes_.empty();
    changes_.insert_or_assign(id.value(), std::move(text));
  }
  if (first) wake_.notify_one();
}

bool StateStore::Flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  ++flushes_;
  wake_.notify_one();
  const bool done = written_.wait_for(lock, timeout,
                                      [this] { return changes_.empty() && !writing_ && !behind_; });
  --flushes_;
  return done;
}

void StateStore::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || behind_ || !changes_.empty(); });
    wake_.wait_for(lock, kGather, [this] { return ending_ || flushes_ > 0; });
    if (ending_) return;
    Changes changes = std::exchange(changes_, {});
    writing_ = true;
    lock.unlock();
    const bool written = Write(std::move(changes));
    lock.lock();
    writing_ = false;
    behind_ = !written;
    if (behind_) wake_.wait_for(lock, kPause, [this] { return ending_; });
    written_.notify_all();
  }
}

// False when it has to be tried again.
bool StateStore::Write(Changes&& changes) {
  Status status;
  for (auto& [name, text] : changes) {
    const auto old = live_.find(name);
    if (old != live_.end()) live_bytes_ -= old->second.size();
    if (text) {
      live_bytes_ += text->size();
      if (status.ok() && log_.writable()) status = log_.Put(name, *text);
      if (old != live_.end()) {
        old->second = *std::move(text);
      } else {
        live_.emplace(name, *std::move(text));
      }
    } else if (old != live_.end()) {
      live_.erase(old);
      if (status.ok() && log_.writable()) status = log_.Erase(name);
    }
  }
  if (status.ok() && log_.writable()) status = log_.Sync();
  if (!status.ok()) Complain(status);
  // Also the first time, and after an error.
  if (!log_.writable() || log_.WantsRewrite(live_bytes_)) {
    status = log_.Rewrite(live_);
    if (!status.ok()) {
      Complain(status);
      return false;
    }
  }
  complained_ = false;
  return true;
}

void StateStore::Complain(const Status& status) {
  if (std::exchange(complained_, true)) return;
  report_(fmt::format("the state is not saved: {}", Message(status)));
}

}  // namespace resmgr
