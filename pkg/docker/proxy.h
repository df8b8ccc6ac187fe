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
#include "pkg/sys/acceptor.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::docker {

class CallWatch;
class HeldExchange;
class Interception;
class Interceptor;
class ProxyConnection;

// Stands between clients of the Docker API and dockerd: each client's connection has one of its own
// to dockerd, opened with its first request and closed with it, and all bytes of requests and
// replies pass as they are. What is no clear HTTP/1.x is refused here (pkg/docker/http_head.h), in
// the form of dockerd's own errors. Requests that an Interceptor wants are held as a whole, and so
// are their replies (interception.h). Loop's thread only.
class Proxy {
 public:
  // Of all requests that are held.
  static constexpr size_t kMaxHeld = size_t{64} * 1024 * 1024;

  struct Options {
    std::string engine_socket{};
    // Clients that may be connected at once; one more ends that which is idle for longest.
    size_t max_clients = 1024;
    // From the first byte of a request until its head is complete.
    std::chrono::milliseconds head_timeout{10'000};
    // From the head of a request that is held until its body is complete: what it holds others
    // cannot have. For one that passes dockerd waits.
    std::chrono::milliseconds body_timeout{30'000};
    // What a client that was refused may still send before the connection is closed under it.
    std::chrono::milliseconds linger{1'000};
    // How long dockerd's reply to a request that was held is awaited once its client is gone.
    std::chrono::milliseconds orphan_timeout{30'000};
  };

  // Clients connect to the listener. The others outlive this. No interceptor: everything passes. No
  // watch: nothing is counted or shown.
  Proxy(EventLoop& loop, ListeningSocket listener, Options options,
        Interceptor* interceptor = nullptr, CallWatch* watch = nullptr);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Accepts no more clients, waits for the exchanges under way except those that may last for ever
  // (Exchange::lasting), for `deadline` at most, then runs `done`, once. The rest ends with the
  // proxy.
  void Drain(std::chrono::milliseconds deadline, std::function<void()> done);
  // Accepts clients again, whether or not `done` of Drain ran; it does not run any more. What is
  // under way goes on.
  void Resume(ListeningSocket listener);
  size_t connections() const { return connections_.size(); }

  // For connections:
  const Options& options() const { return options_; }
  bool draining() const { return drained_ != nullptr; }
  // How often something happened before: an order of activities.
  uint64_t Tick() { return ++ticks_; }
  void NoteRefusal(const Status& why);
  // While it drains: an exchange has ended.
  void CheckDrained();
  // Destroys these later.
  void Remove(ProxyConnection& connection);
  void Discard(std::unique_ptr<HeldExchange> exchange);
  Interceptor* interceptor() const { return interceptor_; }
  CallWatch* watch() const { return watch_; }
  // Accounts for so many bytes more that are held; false: there are too many.
  bool Hold(size_t bytes);
  void Release(size_t bytes) { held_ -= bytes; }

 private:
  void Accept(UniqueFd socket);
  void NoteClients();
  void EndLongestIdle();

  EventLoop& loop_;
  const Options options_;
  Interceptor* const interceptor_;
  CallWatch* const watch_;
  Logger& log_;
  RateLimit accept_limit_;
  RateLimit refusal_limit_;
  uint64_t ticks_ = 0;
  size_t held_ = 0;  // bytes
  Acceptor acceptor_;
  std::list<std::unique_ptr<ProxyConnection>> connections_;
  DestroyLater<std::shared_ptr<void>> removed_{loop_};  // connections, and exchanges before theirs
  EventLoop::HandlePtr drain_timer_;
  std::function<void()> drained_;
};

}  // namespace resmgr::docker
