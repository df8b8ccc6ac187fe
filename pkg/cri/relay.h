// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/call_tap.h"
#include "pkg/cri/connection.h"
#include "pkg/cri/interception.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/metrics.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace dump {
class Dumper;
}  // namespace dump

// The socket that the kubelet uses. Accepts connections and relays every call, bytes as they are,
// to the runtime that serves it. Loop's thread only.
class Relay {
 public:
  struct Options {
    std::string runtime_socket;
    // Where image calls go; nullopt: they are not served.
    std::optional<std::string> image_socket;
    // How long the calls in flight may take on shutdown.
    std::chrono::milliseconds drain_timeout{25'000};
  };

  // Those who see calls. Not owned; each may be null and outlives the relay.
  struct Watchers {
    Interceptor* interceptor = nullptr;
    dump::Dumper* dumper = nullptr;
    Metrics* metrics = nullptr;
  };

  // Clients connect to the listener.
  Relay(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener, Options options,
        Watchers watchers);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // For the calls that come from now on; nullptr lets them pass. The former one outlives the calls
  // that it has begun.
  void SetInterceptor(Interceptor* interceptor) { watchers_.interceptor = interceptor; }

  // Whether clients listen to the runtime's container events now, and who is told when that
  // changes.
  bool clients_listen() const { return listeners_ > 0; }
  void OnClientsListen(std::function<void(bool listen)> told) { told_listen_ = std::move(told); }

  // Refuses what is new, waits for the calls in flight, then runs `done`, once.
  void Drain(std::function<void()> done);
  size_t connections() const { return connections_.size(); }

  // For connections and calls:
  h2::FlushQueue& flushes() { return flushes_; }
  Interceptor* interceptor() const { return watchers_.interceptor; }
  bool counts_calls() const { return watchers_.metrics != nullptr; }
  // A client's call to listen to events begins, or is over.
  void AddListener();
  void RemoveListener();
  void CountCall(const Method& method, bool intercepted, int grpc_code);
  // Null when nobody wants to see this call.
  std::unique_ptr<CallTap> MakeTap(const Method& method, bool intercepted);
  // The same memory for the same socket, as long as the relay lives. Unimplemented: images are not
  // served here.
  StatusOr<std::string_view> SocketFor(const Method& method) const;
  // A call that should have been read could not be.
  void NoteUnread(const Method& method, std::string_view why);
  // Destroys the connection, later.
  void Remove(Connection& connection, std::string_view why);

 private:
  void Accept();
  void NoteConnections();
  void FinishDrain();

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Options options_;
  const bool one_socket_;  // for both services
  Watchers watchers_;
  Logger& log_;
  RateLimit unread_limit_;
  uint64_t next_call_ = 1;
  size_t listeners_ = 0;
  std::function<void(bool listen)> told_listen_;
  std::optional<ListeningSocket> listener_;
  EventLoop::HandlePtr accept_watch_;
  EventLoop::HandlePtr accept_pause_;
  std::list<std::unique_ptr<Connection>> connections_;
  EventLoop::HandlePtr drain_timer_;
  std::function<void()> drained_;
};

}  // namespace resmgr
