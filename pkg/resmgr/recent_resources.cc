// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/recent_resources.h"

#include <algorithm>
#include <utility>

namespace resmgr {

RecentResources::RecentResources()
    : none_(std::make_shared<const AppliedResources>()),
      wanted_(none_),
      present_(none_),
      missing_(std::make_shared<const ResourceValues>()) {
  recent_.fill(none_);
}

SharedResources RecentResources::Desired(const Container& container) {
  if (IsDesired(*recent_[latest_], container)) return recent_[latest_];
  for (size_t i = 0; i < recent_.size(); ++i) {
    if (IsDesired(*recent_[i], container)) return recent_[latest_ = i];
  }
  return Remember(DesiredResources(container));
}

SharedResources RecentResources::Share(const AppliedResources& resources) {
  const auto found = std::ranges::find_if(
      recent_, [&resources](const SharedResources& recent) { return *recent == resources; });
  return found != recent_.end() ? *found : Remember(resources);
}

const std::shared_ptr<const ResourceValues>& RecentResources::Missing(
    const SharedResources& wanted, const SharedResources& present) {
  if (wanted == wanted_ && present == present_) return missing_;
  wanted_ = wanted;
  present_ = present;
  ResourceValues missing = Difference(*wanted, *present);
  if (missing != *missing_) {
    missing_ = std::make_shared<const ResourceValues>(std::move(missing));
  }
  return missing_;
}

SharedResources RecentResources::Remember(AppliedResources resources) {
  latest_ = oldest_;
  oldest_ = (oldest_ + 1) % recent_.size();
  recent_[latest_] = std::make_shared<const AppliedResources>(std::move(resources));
  return recent_[latest_];
}

}  // namespace resmgr
