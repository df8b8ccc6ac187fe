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

// Waits for a daemon that answered before and is now away, as at a restart. Tells on `notes`, once
// each time, that it waits and that the daemon is back.
class DaemonWait {
 public:
  explicit DaemonWait(std::ostream& notes) : notes_(notes) {}

  void Answered();
  // OK: ask again later. Returns the error if no daemon has answered yet, or the daemon's answer is
  // final.
  Status After(const Status& error);

 private:
  std::ostream& notes_;
  bool answered_ = false;
  bool waits_ = false;
};

// Calls `look` after each pause and shows its text whenever it has changed: on a terminal in place
// of the former text, elsewhere below it. Goes on after restarts of the daemon. Returns the first
// final error of `look`, or OK if the output cannot be written; Ctrl-C ends the program.
Status Watch(const std::function<StatusOr<std::string>()>& look, std::ostream& out,
             std::ostream& notes, std::chrono::milliseconds pause = std::chrono::seconds(1));

// Finds the entries of a growing list that were not in it the last time. Entries are compared as a
// whole: times do not suffice, since a clock may be set back, and the daemon may drop old entries
// from any place.
class FollowedEntries {
 public:
  // Returns the new entries of the list, in its order.
  Reply NewOf(const Reply& list);

 private:
  std::map<std::string, int> last_;  // the entries of the last list, and how often each was in it
};

}  // namespace resmgr
