// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/hand_over.h"

namespace resmgr {

// The daemon's part of pkg/sys/hand_over.h that is to serve in the place of another one. Everything
// waits, with a deadline; so it is for the time before the loop runs. While it is not finished the
// other daemon serves on when this object, or this process, ends.
class TakeOver {
 public:
  struct Options {
    std::string socket{};  // HandOver::SocketOf that of the other daemon
    std::string version{};
    // For its sockets, and for its end once nothing is in flight.
    std::chrono::milliseconds answer{10'000};
    // For its calls in flight: longer than that daemon lets them take.
    std::chrono::milliseconds drain{30'000};
  };

  // Asks for the sockets and puts them into InheritedSockets. Null: no daemon is there.
  // FailedPrecondition with its reason: it refuses. DeadlineExceeded.
  static StatusOr<std::unique_ptr<TakeOver>> Begin(Options options);

  // Waits until the other daemon has ended, or has died: from then on clients wait for this one.
  // Sockets that it had and that are not served at `paths` are closed. On an error it serves on.
  Status Finish(const std::vector<std::string>& paths);

 private:
  TakeOver(Options options, HandOverChannel channel, UniqueFd process)
      : options_(std::move(options)), channel_(std::move(channel)), process_(std::move(process)) {}

  Status ReceiveSockets();
  void WaitForExit() const;

  const Options options_;
  HandOverChannel channel_;
  // Of the other daemon; none where it is in another PID namespace.
  const UniqueFd process_;
};

}  // namespace resmgr
