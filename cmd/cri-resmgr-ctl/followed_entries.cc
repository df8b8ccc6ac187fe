// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/followed_entries.h"

#include <utility>

#include "pkg/base/json.h"

namespace resmgr {

Reply FollowedEntries::NewOf(const Reply& list) {
  std::map<std::string, int> known = std::exchange(last_, {});
  Reply fresh = Reply::array();
  for (const Reply& entry : list) {
    std::string text = OrderedJsonText(entry);
    if (--known[text] < 0) fresh.push_back(entry);
    ++last_[std::move(text)];
  }
  return fresh;
}

}  // namespace resmgr
