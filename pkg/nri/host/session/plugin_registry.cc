// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_registry.h"

#include <algorithm>

#include "pkg/nri/protocol.h"

namespace resmgr::nri {

PluginStats& PluginRegistry::Add(std::string_view index, std::string_view name) {
  const std::string full_name = FullPluginName(index, name);
  if (!known_.contains(full_name) && known_.size() >= kMostKnown) ForgetOldest();
  Known& known = known_[full_name];
  known.index = index;
  known.name = name;
  ++known.sessions;
  if (metrics_ != nullptr) known.stats.CountBy(&metrics_->Plugin("nri", full_name));
  return known.stats;
}

void PluginRegistry::ForgetOldest() {
  auto oldest = known_.end();
  for (auto each = known_.begin(); each != known_.end(); ++each) {
    if (each->second.sessions > 0) continue;
    if (oldest == known_.end() || each->second.ended < oldest->second.ended) oldest = each;
  }
  if (oldest != known_.end()) known_.erase(oldest);
}

void PluginRegistry::SetReady(std::string_view full_name, uint32_t events) {
  Known& known = known_.find(full_name)->second;
  ++known.ready;
  known.state = PluginView::State::kReady;
  known.events = events;
  known.last_error.clear();
  known.exit.clear();
  CountReady();
}

void PluginRegistry::CountReady() {
  if (metrics_ == nullptr) return;
  const auto ready = std::ranges::count_if(
      known_, [](const auto& known) { return known.second.state == PluginView::State::kReady; });
  metrics_->SetReadyPlugins("nri", static_cast<size_t>(ready));
}

void PluginRegistry::Remove(std::string_view full_name, bool was_ready, PluginView::State state,
                            const Status& why) {
  Known& known = known_.find(full_name)->second;
  --known.sessions;
  if (was_ready) --known.ready;
  if (known.ready > 0) return;
  known.state = state;
  known.last_error = ErrorText(Message(why));
  known.ended = ++ended_;
  CountReady();
}

void PluginRegistry::NoteExit(std::string_view index, std::string_view name, const Status& why) {
  const std::string full_name = FullPluginName(index, name);
  if (!known_.contains(full_name)) {
    Add(index, name);
    Remove(full_name, false, PluginView::State::kFailed, why);
  }
  Known& known = known_.find(full_name)->second;
  if (known.ready == 0) known.exit = ErrorText(Message(why));
}

std::vector<PluginView> PluginRegistry::List() const {
  std::vector<PluginView> list;
  for (const auto& [full_name, known] : known_) {
    const std::string& of_connection = known.exit.empty() ? known.last_error : known.exit;
    list.push_back({.kind = "nri",
                    .name = known.name,
                    .index = known.index,
                    .state = known.state,
                    .events = EventNames(known.events),
                    .calls = known.stats.calls(),
                    .failures = known.stats.failures(),
                    .last_error = of_connection.empty() ? known.stats.last_error() : of_connection,
                    .p50_micros = known.stats.MedianMicros()});
  }
  return list;
}

}  // namespace resmgr::nri
