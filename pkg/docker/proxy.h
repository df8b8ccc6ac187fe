// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::docker {

class ProxyConnection;

// Stands between clients of the Docker API and dockerd: each client's connection has one of its own
// to dockerd, opened with its first request and closed with it, and all bytes of requests and
// replies pass as they are. What is no clear HTTP/1.x is refused here (pkg/docker/http_head.h), in
// the form of dockerd's own errors. Loop's thread only.
class Proxy {
 public:
  struct Options {
    std::string engine_socket{};
    // Clients that may be connected at once; one more ends that which is idle for longest.
    size_t max_clients = 1024;
    // From the first byte of a request until its head is complete.
    std::chrono::milliseconds head_timeout{10'000};
    // What a client that was refused may still send before the connection is closed under it.
    std::chrono::milliseconds linger{1'000};
  };

  // Clients connect to the listener.
  Proxy(EventLoop& loop, ListeningSocket listener, Options options);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Accepts no more clients, waits for the exchanges under way except those that may last for ever
  // (Exchange::lasting), for `deadline` at most, then runs `done`, once. The rest ends with the
  // proxy.
  void Drain(std::chrono::milliseconds deadline, std::function<void()> done);
  size_t connections() const { return connections_.size(); }

  // For connections:
  const Options& options() const { return options_; }
  bool draining() const { return drained_ != nullptr; }
  // How often something happened before: an order of activities.
  uint64_t Tick() { return ++ticks_; }
  void NoteRefusal(const Status& why);
  // While it drains: an exchange has ended.
  void CheckDrained();
  // Destroys the connection, later.
  void Remove(ProxyConnection& connection);

 private:
  void Accept();
  void Pause();
  void EndLongestIdle();

  EventLoop& loop_;
  const Options options_;
  Logger& log_;
  RateLimit accept_limit_;
  RateLimit refusal_limit_;
  uint64_t ticks_ = 0;
  std::optional<ListeningSocket> listener_;
  EventLoop::HandlePtr accept_watch_;
  EventLoop::HandlePtr accept_pause_;
  std::list<std::unique_ptr<ProxyConnection>> connections_;
  std::list<std::unique_ptr<ProxyConnection>> removed_;  // until the next turn of the loop
  EventLoop::HandlePtr destroying_;                      // while there are such
  EventLoop::HandlePtr drain_timer_;
  std::function<void()> drained_;
};

}  // namespace resmgr::docker
