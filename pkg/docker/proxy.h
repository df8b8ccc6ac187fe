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

// Connects clients of the Docker API with dockerd: each client's connection has its own connection
// to dockerd, opened with its first request and closed with it, and the bytes of requests and
// replies pass unchanged. Ambiguous or malformed HTTP/1.x is refused here
// (pkg/docker/http_message.h), in the form of dockerd's own errors. Requests that an Interceptor
// wants are held as a whole, and so are their replies (interception.h). Loop's thread only.
class Proxy {
 public:
  // Limit in bytes of all held requests together.
  static constexpr size_t kMaxHeld = size_t{64} * 1024 * 1024;
  static constexpr size_t kMaxClients = 1024;

  struct Options {
    std::string engine_socket{};
    // Clients that may be connected at once; one more closes the connection that is idle for
    // longest.
    size_t max_clients = kMaxClients;
    // Time from the first byte of a request until its head is complete.
    std::chrono::milliseconds head_timeout{10'000};
    // Time from the head of a held request until its body is complete, since it uses room that
    // others need. dockerd itself waits for bodies that pass.
    std::chrono::milliseconds body_timeout{30'000};
    // Time for a refused client to finish sending before its connection is closed.
    std::chrono::milliseconds linger{1'000};
    // How long the reply to a held request is awaited once it was forwarded and its client is gone.
    std::chrono::milliseconds orphan_timeout{30'000};
  };

  // Clients connect to the listener. Loop, interceptor and watch outlive this object. Without an
  // interceptor all requests pass; without a watch nothing is counted or dumped.
  Proxy(EventLoop& loop, ListeningSocket listener, Options options,
        Interceptor* interceptor = nullptr, CallWatch* watch = nullptr);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Accepts no more clients and waits, at most for `deadline`, for the exchanges under way that are
  // not Exchange::lasting, and for requests that have arrived; then runs `done`, once. Lasting
  // exchanges end with the proxy.
  void Drain(std::chrono::milliseconds deadline, std::function<void()> done);
  // Accepts clients again, whether or not Drain's `done` has run; after this call `done` does not
  // run any more. Exchanges under way go on.
  void Resume(ListeningSocket listener);
  size_t connections() const { return connections_.size(); }

  // The connections use the following functions.
  const Options& options() const { return options_; }
  bool draining() const { return drained_ != nullptr; }
  // A counter that orders connections by their last activity.
  uint64_t Tick() { return ++ticks_; }
  void NoteRefusal(const Status& why);
  // Called when a request has begun, or its connection has ended, while the proxy drains.
  void CheckDrained();
  // Destroys the object in a later turn of the loop.
  void Remove(ProxyConnection& connection);
  void Discard(std::unique_ptr<HeldExchange> exchange);
  Interceptor* interceptor() const { return interceptor_; }
  CallWatch* watch() const { return watch_; }
  // Adds to the held bytes; false: their sum is above the limit.
  bool Hold(size_t bytes);
  void Release(size_t bytes) { held_ -= bytes; }

 private:
  void Accept(UniqueFd socket);
  void NoteClients();
  void EndLongestIdle();
  void TellDrained();

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
  // Runs the `done` of Drain in the next turn of the loop. Resume cancels this.
  EventLoop::HandlePtr telling_;
};

}  // namespace resmgr::docker
