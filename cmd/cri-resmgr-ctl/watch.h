// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <ostream>
#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/status.h"

namespace resmgr {

// Waits for a daemon that answered before and is away, as at a restart. Tells on `notes`, once each
// time, that it waits and that the daemon is back.
class DaemonWait {
 public:
  explicit DaemonWait(std::ostream& notes) : notes_(notes) {}

  void Answered();
  // OK: ask again later. The error, if no daemon has answered yet or the daemon's answer is final.
  Status After(const Status& error);

 private:
  std::ostream& notes_;
  bool answered_ = false;
  bool waits_ = false;
};

// Calls `look` after each pause and shows its text whenever it has changed: on a terminal in place
// of the former text, elsewhere below it. Goes on over restarts of the daemon. Returns the first
// final error of `look`, or when the output cannot be written; Ctrl-C ends the program.
Status Watch(const std::function<StatusOr<std::string>()>& look, std::ostream& out,
             std::ostream& notes, std::chrono::milliseconds pause = std::chrono::seconds(1));

// Finds the entries of a growing list that were not in it the last time. Times play no part, since
// a clock may be set back, and the daemon drops old entries from any place.
class FollowedEntries {
 public:
  // Returns the new entries of the list, in its order.
  Reply NewOf(const Reply& list);

 private:
  std::map<std::string, int> last_;  // the entries of the last list, and how often it had them
};

}  // namespace resmgr
