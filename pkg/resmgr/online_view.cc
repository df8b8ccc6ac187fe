// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/online_view.h"

#include <algorithm>

namespace resmgr {

OnlineView::OnlineView(const Snapshot& all, const CpuSet& usable, const CpuSet& withheld)
    : ChangedView(all) {
  all.ForEachContainer([&](const Pod&, const Container& container) {
    const Placement& before = container.placement;
    const CpuSet own = (before.exclusive & usable) - withheld;
    if (own == before.exclusive && (!before.cpus || before.cpus->IsSubsetOf(usable))) return;
    Placement& placement = changed_.emplace(container.key, container).first->second.placement;
    placement.exclusive = own;
    if (placement.cpus) *placement.cpus &= usable;
    const bool lost_all = own.empty() && !before.exclusive.empty();
    if (!lost_all && placement.cpus && !placement.cpus->empty()) return;
    placement.cpus.reset();
    placement.pool.clear();
  });
}

void OnlineView::Complete(Plan& plan) const {
  for (const auto& [key, container] : changed_) {
    if (!container.placement.cpus || plan.Find(key) != nullptr) continue;
    const bool shares = std::ranges::any_of(plan.shared, [&key = key](const SharedChange& change) {
      return std::ranges::binary_search(change.containers, key);
    });
    if (!shares) plan.changes.push_back({key, container.placement});
  }
}

}  // namespace resmgr
