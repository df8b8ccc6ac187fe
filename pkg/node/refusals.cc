// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/refusals.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"

namespace resmgr {
namespace {

constexpr size_t kLongestRefusal = 1024;
constexpr size_t kNamedRefusals = 5;

Problem ProblemOf(const std::string& container, const Refusals::Refusal& refusal) {
  return {
      .kind = "refused",
      .since = refusal.first,
      .message = fmt::format("{} was refused {}: {}", container,
                             CountText(static_cast<int64_t>(refusal.count), "time"), refusal.error),
      .objects = {container},
      .next = "cri-resmgr-ctl explain " + container};
}

}  // namespace

Refusals::Refusals(const History& history, WallClock now) : now_(std::move(now)) {
  for (const History::Entry* const entry : history.Last(history.capacity())) {
    // If the clock was put back, entries may lie in the future: they are left out.
    if (entry->event == History::Event::kRefused && entry->time <= now_())
      Note(entry->container, entry->time, entry->error);
  }
  ForgetOld();
}

void Refusals::Note(const std::string& container, Time time, std::string_view error) {
  Refusal& refusal = refusals_[container];
  if (refusal.count == 0) refusal.first = time;
  refusal.last = time;
  ++refusal.count;
  refusal.over = false;
  refusal.error = Utf8Cut(Printable(error, kLongestRefusal), kLongestRefusal);
  if (refusals_.size() <= kMost) return;
  refusals_.erase(
      std::ranges::min_element(refusals_, {}, [](const auto& each) { return each.second.last; }));
}

void Refusals::Note(const Act& act, const Status& why) {
  ForgetOld();
  Note(History::NameOf(act.pod, act.container.name), now_(), Message(why));
}

// Runs for each creation, so it returns at once if the list is empty, as it mostly is.
void Refusals::Settle(const Act& act) {
  if (refusals_.empty()) return;
  const auto found = refusals_.find(History::NameOf(act.pod, act.container.name));
  if (found != refusals_.end()) found->second.over = true;
}

void Refusals::ForgetOld() {
  std::erase_if(refusals_,
                [limit = now_() - kKept](const auto& each) { return each.second.last < limit; });
}

std::vector<Problem> Refusals::problems() const {
  using Named = std::pair<const std::string, Refusal>;
  const Time limit = now_() - kKept;
  std::vector<const Named*> now;
  for (const Named& each : refusals_)
    if (!each.second.over && each.second.last >= limit) now.push_back(&each);
  std::ranges::stable_sort(now, std::greater(),
                           [](const Named* each) { return each->second.last; });
  std::vector<Problem> problems;
  for (size_t i = 0; i < std::min(now.size(), kNamedRefusals); ++i)
    problems.push_back(ProblemOf(now[i]->first, now[i]->second));
  if (now.size() <= kNamedRefusals) return problems;
  Problem& more =
      problems.emplace_back(Problem{.kind = "refused", .next = "cri-resmgr-ctl history"});
  more.since = now[kNamedRefusals]->second.first;
  for (size_t i = kNamedRefusals; i < now.size(); ++i) {
    more.since = std::min(more.since, now[i]->second.first);
    more.objects.push_back(now[i]->first);
  }
  more.message = fmt::format("and {} more were refused in the last hour",
                             CountText(static_cast<int64_t>(more.objects.size()), "container"));
  return problems;
}

}  // namespace resmgr
