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
// starve other work. If as many connections are present as are allowed, a new one ends one of them.
// If no file descriptor is left, the socket is not read for a while: connections wait in its queue.
// Loop's thread only.
class Acceptor {
 public:
  struct Options {
    std::function<void(UniqueFd socket)> take{};
    // Called for the log if the next connection could not be accepted.
    std::function<void(const Status& why)> failed{};
    // Returns the number of present connections, of which there may be `most`. Unset: no limit.
    std::function<size_t()> present{};
    size_t most = SIZE_MAX;
    // Ends one of the present connections; called only if there is one.
    std::function<void()> make_room{};
    // The pause after a failure, unless a connection was ended to make room.
    std::chrono::milliseconds pause{100};
  };

  // The functions are not called after this object's end. `take` may call Stop, but may not destroy
  // this object.
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
  bool made_room_ = false;  // the last failed accept has already ended a connection
};

// The connection to end in favour of a new one: an idle one before a busy one, and among equals the
// one that was active least recently. `connections` are pointers to objects with busy() and
// last_active(), and not empty.
template <typename Connections>
auto& LongestIdle(Connections& connections) {
  return **std::ranges::min_element(connections, {}, [](const auto& each) {
    return std::tuple(each->busy(), each->last_active());
  });
}

}  // namespace resmgr
