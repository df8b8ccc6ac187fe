// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/cpu_history.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace resmgr::test {

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
