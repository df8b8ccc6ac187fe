// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/refusal_notes.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace resmgr {
namespace {

constexpr StateStore::PodNote kNote = StateStore::PodNote::kRefusal;

History::Entry EntryOf(std::string_view name, const SavedRefusal& saved) {
  return {.time = saved.time,
          .event = History::Event::kRefused,
          .container = std::string(name),
          .pod = saved.pod,
          .place = std::make_shared<const Place>(),
          .reason = std::make_shared<const std::string>(saved.reason),
          .asked = std::make_shared<const History::Asked>(
              History::Asked{.qos = saved.qos, .requirements = saved.requirements}),
          .error = saved.error};
}

}  // namespace

RefusalNotes::RefusalNotes(StateStore& state, History& history) : state_(state), history_(history) {
  std::vector<History::Entry> kept;
  std::vector<std::string> unusable;
  state_.ForEachNote(kNote, [&](std::string_view name, std::string_view text) {
    const StatusOr<SavedRefusal> saved = DecodeRefusal(text);
    const bool whole = std::ranges::count(name, '/') == 2;
    if (saved.ok() && whole) {
      kept.push_back(EntryOf(name, *saved));
    } else {
      unusable.emplace_back(name);
    }
  });
  for (const std::string& name : unusable)
    state_.EraseNote(kNote, PodSandboxId(name));
  std::ranges::sort(kept, {}, [](const History::Entry& entry) {
    return std::pair(entry.time, std::string_view(entry.container));
  });
  for (const History::Entry& entry : kept) {
    history.Restore(entry);
    names_.push_back(entry.container);
  }
  while (names_.size() > kMost)
    Forget(names_.begin());
}

void RefusalNotes::OnRefused(const Act& /*act*/, const Status& /*why*/) {
  const History::Entry& entry = *history_.Last(1).front();
  std::erase(names_, entry.container);
  names_.push_back(entry.container);
  if (names_.size() > kMost) Forget(names_.begin());
  state_.PutNote(kNote, PodSandboxId(entry.container),
                 EncodeRefusal({.time = entry.time,
                                .pod = entry.pod,
                                .qos = entry.asked->qos,
                                .requirements = entry.asked->requirements,
                                .reason = *entry.reason,
                                .error = entry.error}));
  state_.Commit();
}

void RefusalNotes::OnPlaced(const Act& act) {
  if (names_.empty()) return;
  const auto name = std::ranges::find(names_, History::NameOf(act.pod, act.container.name));
  if (name == names_.end()) return;
  Forget(name);
  state_.Commit();
}

void RefusalNotes::Forget(std::list<std::string>::iterator name) {
  state_.EraseNote(kNote, PodSandboxId(*name));
  names_.erase(name);
}

}  // namespace resmgr
