// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/adjustment_edits.h"
#include "pkg/cri/call_observers.h"
#include "pkg/cri/connection.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/h2/limits.h"
#include "pkg/h2/memory.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/metrics/metrics.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/sys/acceptor.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

class BackendRouter;
class HandlerAliases;

namespace dump {
class Dumper;
}  // namespace dump

// The socket for the kubelet. Accepts connections and relays every call, byte by byte, to the
// runtime that serves it. Loop's thread only.
class Relay {
 public:
  // Limit of bytes kept for all calls: requests until they have left, their decompressed forms,
  // header fields, and the calls themselves. They are limited so that all memory (h2::Memory) stays
  // below h2::kMuchHeld, but this much is always available.
  static constexpr size_t kLeastHeld = size_t{8} * 1024 * 1024;
  // Every connection may hold this much, enough for a few ordinary calls.
  static constexpr size_t kSmallHeld = size_t{16} * 1024;
  static constexpr std::string_view kNoMemory =
      "no memory is left for so many requests at once; try again";
  // More than any node needs: its clients are a kubelet and a few tools.
  static constexpr size_t kMostClients = 1024;
  // How many clients a process with this limit of open files can serve: each takes its own
  // connection, one to each runtime and one to the default runtime's image service, and other parts
  // need files, too.
  static size_t ClientsWith(size_t files, size_t runtimes = 1);

  struct Options {
    std::string runtime_socket;
    // The socket for image calls; nullopt: not served.
    std::optional<std::string> image_socket;
    // Number of clients that may be connected at once; a further one disconnects the client that is
    // idle for longest.
    size_t max_clients = kMostClients;
    // Time for the calls in flight on shutdown.
    std::chrono::milliseconds drain_timeout{25'000};
  };

  // Observers of calls. Not owned; each may be null and outlives the relay.
  struct Observers {
    Pipeline* pipeline = nullptr;
    dump::Dumper* dumper = nullptr;
    Metrics* metrics = nullptr;
  };

  // Clients connect to the listener.
  Relay(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener, Options options,
        Observers observers);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // With several runtimes: sets the router for calls from now on. It outlives the relay, and
  // Options::runtime_socket is the default runtime's then.
  void SetRouter(BackendRouter* router) { router_ = router; }

  // Sets the aliases that calls may name from now on. They outlive the relay.
  void SetAliases(HandlerAliases* aliases) { aliases_ = aliases; }

  // Whether a client listens to the runtime's container events now. The function is called when
  // that changes.
  bool clients_listen() const { return listeners_ > 0; }
  void OnClientsListen(std::function<void(bool listen)> told) {
    on_clients_listen_ = std::move(told);
  }
  // Called when a call of an unknown method may have changed a runtime's objects: it was forwarded,
  // and the runtime did not report a failure.
  void OnUnknownMethod(std::function<void()> told) { on_unknown_method_ = std::move(told); }
  // Called for each event that passes to a client.
  void OnEvent(std::function<void(const ContainerEvent&)> told) { on_event_ = std::move(told); }

  // Refuses new calls, waits for those in flight, then runs `done`, once.
  void Drain(std::function<void()> done);
  // Accepts clients again, also before Drain's `done` has run, which then never runs. Clients that
  // got a GOAWAY still disconnect after their calls.
  void Resume(ListeningSocket listener);
  size_t connections() const { return connections_.size(); }

  // Used by connections and calls:
  h2::FlushQueue& flushes() { return flushes_; }
  Pipeline* pipeline() const { return observers_.pipeline; }
  AdjustmentSuffix& suffix() { return suffix_; }
  BackendRouter* router() const { return router_; }
  HandlerAliases* aliases() const { return aliases_; }
  CallCounts& counts() { return counts_; }
  // A client's call of GetContainerEvents begins, or ends.
  void AddListener();
  void RemoveListener();
  void NoteEvent(const ContainerEvent& event) {
    if (on_event_) on_event_(event);
  }
  void NoteUnknownMethod() {
    if (on_unknown_method_) on_unknown_method_();
  }
  // Null if the dump excludes this call.
  std::unique_ptr<CallTap> MakeTap(const Method& method, bool intercepted);
  // Returns the same memory for the same socket, as long as the relay lives. kUnimplemented: images
  // are not served here.
  StatusOr<std::string_view> SocketFor(const Method& method) const;
  // Notes a call that should have been read but was malformed.
  void NoteUnread(const Method& method, std::string_view why);
  // Counts bytes kept for a call of this connection, until Release. If there is no room, calls of
  // connections with more kept bytes are ended; false: there is still no room.
  bool Hold(const Connection& connection, size_t bytes) {
    if (!Fits(bytes) && !MakeRoom(connection, bytes)) return false;
    held_ += bytes;
    return true;
  }
  void Release(size_t bytes) { held_ -= bytes; }
  // Notes a call that was ended before its runtime or its client ended it.
  void NoteEnded(const Status& why);
  // Counts the memory of a call that was ended to free memory, until its streams are closed.
  void AddEnding(size_t bytes) { ending_ += bytes; }
  void SubEnding(size_t bytes) { ending_ -= bytes; }
  // Calls Call::Unpack in later turns of the loop, in turn with other calls, until the request is
  // decompressed.
  void UnpackSoon(Call& call);
  void ForgetUnpacking(Call& call) { std::erase(unpacking_, &call); }
  // A counter that orders connections by last activity.
  uint64_t Tick() { return ++ticks_; }
  // A connection to this socket, from SocketFor, was opened (1) or closed (-1).
  void CountUpstream(std::string_view socket, int change);
  // Counts the bytes of a connection, if metrics are requested.
  void CountClientBytes(h2::Session& session);
  void CountUpstreamBytes(std::string_view socket, h2::Session& session);
  // Destroys the connection in a later turn of the loop.
  void Remove(Connection& connection, std::string_view why);

 private:
  bool IsImageSocket(std::string_view socket) const;
  void Accept(UniqueFd socket);
  // Ends the connection that is idle for longest, to make room for a new client.
  void EndLongestIdle();
  bool Fits(size_t bytes) const {
    return held_ + bytes <= kLeastHeld || h2::Memory::held() + bytes <= h2::kMuchHeld + ending_;
  }
  bool MakeRoom(const Connection& connection, size_t bytes);
  Connection& Largest();
  void UnpackNext();
  void NoteConnections();
  void FinishDrain();

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Options options_;
  const bool one_socket_;  // both services have one socket
  Observers observers_;
  CallCounts counts_;
  BackendRouter* router_ = nullptr;
  HandlerAliases* aliases_ = nullptr;
  AdjustmentSuffix suffix_;
  Logger& log_;
  RateLimit unread_limit_;
  RateLimit accept_limit_;
  RateLimit idle_limit_;
  RateLimit ended_limit_;
  uint64_t next_call_ = 1;
  uint64_t ticks_ = 0;
  size_t held_ = 0;
  size_t ending_ = 0;
  Connection* largest_ = nullptr;
  size_t largest_held_ = 0;
  int largest_uses_ = 0;
  std::deque<Call*> unpacking_;
  EventLoop::HandlePtr unpack_turn_;  // set while calls wait for Unpack
  int runtime_connections_ = 0;
  int image_connections_ = 0;
  size_t listeners_ = 0;
  std::function<void(bool listen)> on_clients_listen_;
  std::function<void(const ContainerEvent&)> on_event_;
  std::function<void()> on_unknown_method_;
  Acceptor acceptor_;
  std::list<std::unique_ptr<Connection>> connections_;
  DestroyLater<std::unique_ptr<Connection>> removed_{loop_};
  EventLoop::HandlePtr drain_timer_;
  std::function<void()> drained_;
};

}  // namespace resmgr
