// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/model/problem.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::dra {

// Makes the driver known to the kubelet (pluginregistration.Registration). The kubelet watches a
// directory for sockets and calls those that appear. Loop's thread only.
class Registration {
 public:
  struct Options {
    std::string driver{};    // its name
    std::string endpoint{};  // path of the driver's socket, as the kubelet sees it
    // Whether the driver's socket is served; while it is not, the kubelet is refused and asks
    // again.
    std::function<bool()> served = [] { return true; };
    // How long the kubelet may take to ask for the driver. It looks at its directory at once.
    std::chrono::milliseconds patience{60'000};
  };

  explicit Registration(Options options) : options_(std::move(options)) {}

  // This object must outlive their server.
  UnaryServer::Methods Methods();
  // Returns a problem if the kubelet has refused the driver, or has not asked for it.
  std::optional<Problem> problem() const;

 private:
  StatusOr<std::string> Info() const;
  StatusOr<std::string> Note(const std::string& message);

  const Options options_;
  bool registered_ = false;
  std::string refusal_;  // the kubelet's words; "": none
  std::chrono::system_clock::time_point refused_at_{};
  const EventLoop::Clock::time_point begun_ = EventLoop::Clock::now();
};

// Listens at a path where the kubelet looks for sockets: first under a name that the kubelet
// ignores, which is changed when calls can be accepted. May block. A result that another process
// shares (OpenSockets) leaves its file: the caller calls WithdrawFromKubelet before such a one
// ends.
StatusOr<ListeningSocket> ListenForKubelet(const std::string& path);
// Removes the file at the path if it is a socket. May block.
void WithdrawFromKubelet(const std::string& path);

}  // namespace resmgr::dra
