// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// Finds the entries of a growing list that were not in it the last time. Times play no part, since
// a clock may be set back, and the daemon drops old entries from any place.
class FollowedEntries {
 public:
  // The new ones of the list, in its order.
  Reply NewOf(const Reply& list);

 private:
  std::map<std::string, int> last_;  // the entries of the last list, and how often it had them
};

}  // namespace resmgr
