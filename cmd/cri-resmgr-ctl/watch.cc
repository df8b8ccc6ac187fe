// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/watch.h"

#include <string_view>
#include <thread>
#include <utility>

#include <unistd.h>

#include "pkg/base/json.h"
#include "pkg/base/terminal.h"

namespace resmgr {
namespace {

// Moves to the upper left corner and erases everything from there on.
constexpr std::string_view kClear = "\x1b[H\x1b[J";

}  // namespace

void DaemonWait::Answered() {
  answered_ = true;
  if (std::exchange(waits_, false)) notes_ << "cri-resmgr-ctl: the daemon answers again\n";
}

Status DaemonWait::After(const Status& error) {
  const bool away =
      error.code() == StatusCode::kUnavailable || error.code() == StatusCode::kDeadlineExceeded;
  if (!answered_ || !away) return error;
  if (!std::exchange(waits_, true))
    notes_ << "cri-resmgr-ctl: waiting: " << PrintableLines(Message(error)) << '\n';
  return OkStatus();
}

Status Watch(const std::function<StatusOr<std::string>()>& look, std::ostream& out,
             std::ostream& notes, std::chrono::milliseconds pause) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  DaemonWait wait(notes);
  std::string shown;
  bool first = true;
  while (out.good()) {
    StatusOr<std::string> text = look();
    if (text.ok()) {
      wait.Answered();
      if (first || *text != shown) {
        if (terminal) {
          out << kClear;
        } else if (!first) {
          out << '\n';
        }
        out << *text << std::flush;
        shown = *std::move(text);
      }
      first = false;
    } else {
      RESMGR_RETURN_IF_ERROR(wait.After(text.status()));
      // On a terminal the note stands below the text, so the text must be printed again after it.
      shown.clear();
    }
    std::this_thread::sleep_for(pause);
  }
  return OkStatus();
}

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
