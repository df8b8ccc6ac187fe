// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// Accepts the connections of a unix socket, a batch per event, so that a flood of them does not
// starve other work. Where connections are limited, one of the present connections ends in favour
// of a new one. While no file descriptor is left, the socket rests: connections wait in its queue.
// Loop's thread only.
class Acceptor {
 public:
  struct Options {
    std::function<void(UniqueFd socket)> take{};
    // The next connection could not be accepted: for the log.
    std::function<void(const Status& why)> failed{};
    // The number of present connections, and how many may be present at once. Unset: there is no
    // limit.
    std::function<size_t()> present{};
    size_t most = SIZE_MAX;
    // Ends one of the present connections; called only if there is one.
    std::function<void()> make_room{};
    // The rest after a failure, unless a connection could end for it.
    std::chrono::milliseconds pause{100};
  };

  // The functions are not called after the end of this object. `take` may call Stop, but may not
  // destroy the acceptor.
  Acceptor(EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // May be called again after Stop.
  void Listen(ListeningSocket listener);
  // Closes the socket. Connections that were accepted are not affected.
  void Stop();

 private:
  void Accept();
  void Rest(const Status& why);

  EventLoop& loop_;
  const Options options_;
  std::optional<ListeningSocket> listener_;
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr rest_;
  bool made_room_ = false;  // for the accept that failed last
};

// The connection that ends in favour of a new one: an idle one before a busy one, and of these the
// one that was active least recently. `connections` are pointers to objects with busy() and
// last_active(), and not empty.
template <typename Connections>
auto& LongestIdle(Connections& connections) {
  return **std::ranges::min_element(connections, {}, [](const auto& each) {
    return std::tuple(each->busy(), each->last_active());
  });
}

}  // namespace resmgr
