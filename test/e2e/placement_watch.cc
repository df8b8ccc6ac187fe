// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/placement_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace resmgr::test {

PlacementWatch::PlacementWatch(Reader read)
    : read_(std::move(read)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void PlacementWatch::Add(const std::string& container_id, const std::string& name, bool exclusive) {
  const std::lock_guard lock(mutex_);
  containers_[container_id] = {.name = name, .exclusive = exclusive};
}

void PlacementWatch::Remove(const std::string& container_id) {
  const std::lock_guard lock(mutex_);
  containers_.erase(container_id);
}

void PlacementWatch::LookAgain() const {
  // The look under way may have passed a container already: the one after it counts.
  const uint64_t enough = looks_ + 2;
  for (uint64_t seen = looks_; seen < enough; seen = looks_)
    looks_.wait(seen);
}

std::vector<std::string> PlacementWatch::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

void PlacementWatch::Run(const std::stop_token& stop) {
  using std::chrono::steady_clock;
  // A look takes much longer in an emulated machine, where the watch would take a whole CPU.
  constexpr steady_clock::duration kInterval = std::chrono::milliseconds(1);
  constexpr int kPart = 9;
  while (!stop.stop_requested()) {
    const auto begin = steady_clock::now();
    Look();
    const auto taken = steady_clock::now() - begin;
    ++looks_;
    looks_.notify_all();
    std::this_thread::sleep_for(std::max(kInterval, kPart * taken));
  }
}

void PlacementWatch::Look() {
  const std::lock_guard lock(mutex_);
  for (const auto& [exclusive_id, exclusive] : containers_) {
    if (!exclusive.exclusive) continue;
    for (const auto& [shared_id, shared] : containers_) {
      if (shared.exclusive) continue;
      // The two cannot be read at one instant. A conflict is real when the exclusive one ran
      // before and after the shared one was read.
      const auto before = read_(exclusive_id);
      if (!before) continue;
      const auto cpus = read_(shared_id);
      const auto after = read_(exclusive_id);
      if (!cpus || !after || !cpus->Intersects(*before & *after)) continue;
      violations_.push_back(fmt::format("shared container {} on {} while exclusive {} runs on {}",
                                        shared.name, cpus->ToString(), exclusive.name,
                                        after->ToString()));
    }
  }
}

CpuHistory::CpuHistory(Reader read)
    : read_(std::move(read)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void CpuHistory::Add(const std::string& container_id) {
  const std::lock_guard lock(mutex_);
  containers_[container_id].looked = Clock::now();
}

void CpuHistory::Remove(const std::string& container_id) {
  const std::lock_guard lock(mutex_);
  containers_.erase(container_id);
}

std::vector<CpuHistory::Change> CpuHistory::ChangesOf(const std::string& container_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = containers_.find(container_id);
  return found == containers_.end() ? std::vector<Change>() : found->second.changes;
}

std::string CpuHistory::Describe(const std::string& container_id) const {
  std::vector<std::string> words;
  for (const Change& change : ChangesOf(container_id))
    words.push_back(change.cpus ? change.cpus->ToString() : "none");
  return fmt::format("{}", fmt::join(words, ", "));
}

void CpuHistory::Run(const std::stop_token& stop) {
  constexpr std::chrono::microseconds kInterval{200};
  while (!stop.stop_requested()) {
    Look();
    std::this_thread::sleep_for(kInterval);
  }
}

void CpuHistory::Look() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, watched] : containers_) {
    const Clock::time_point start = Clock::now();
    const std::optional<CpuSet> cpus = read_(id);
    if (watched.changes.empty() || watched.changes.back().cpus != cpus) {
      watched.changes.push_back({.after = watched.looked, .before = Clock::now(), .cpus = cpus});
    }
    watched.looked = start;
  }
}

}  // namespace resmgr::test
