// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/watch.h"

#include <chrono>
#include <thread>

#include <unistd.h>

namespace resmgr {
namespace {

constexpr std::chrono::seconds kPause{1};
// Moves to the upper left corner and erases everything from there on.
constexpr std::string_view kClear = "\x1b[H\x1b[J";

}  // namespace

Status Watch(const std::function<StatusOr<std::string>()>& look, std::ostream& out) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::string shown;
  for (bool first = true; out.good(); first = false) {
    RESMGR_ASSIGN_OR_RETURN(std::string text, look());
    if (first || text != shown) {
      if (terminal) {
        out << kClear;
      } else if (!first) {
        out << '\n';
      }
      out << text << std::flush;
      shown = std::move(text);
    }
    std::this_thread::sleep_for(kPause);
  }
  return OkStatus();
}

}  // namespace resmgr
