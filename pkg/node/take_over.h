// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/hand_over.h"

namespace resmgr {

// The side of pkg/sys/hand_over.h that takes over from another daemon. Every function waits, with a
// deadline, so it is used before the loop runs. Until it is finished the other daemon serves on if
// this object, or this process, ends.
class TakeOver {
 public:
  struct Options {
    std::string socket{};  // HandOver::SocketOf for the other daemon
    std::string version{};
    // Time for its sockets, and for its end once no calls are in flight.
    std::chrono::milliseconds answer{10'000};
    // Time for its calls in flight: longer than that daemon's own limit.
    std::chrono::milliseconds drain{30'000};
  };

  // Asks for the sockets and puts them into InheritedSockets. Null: no daemon is running.
  // kFailedPrecondition with its reason: it refuses. kDeadlineExceeded.
  static StatusOr<std::unique_ptr<TakeOver>> Begin(Options options);

  // Waits until the other daemon has ended, or has died: from then on clients wait for this one.
  // Closes its sockets that are not served at `paths`. On an error it serves on.
  Status Finish(const std::vector<std::string>& paths);

 private:
  TakeOver(Options options, HandOverChannel channel, UniqueFd process)
      : options_(std::move(options)), channel_(std::move(channel)), process_(std::move(process)) {}

  Status ReceiveSockets();
  void WaitForExit() const;

  const Options options_;
  HandOverChannel channel_;
  // A pidfd of the other daemon; none if it is in another PID namespace.
  const UniqueFd process_;
};

}  // namespace resmgr
