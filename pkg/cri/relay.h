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
#include "pkg/cri/call_counts.h"
#include "pkg/cri/call_tap.h"
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

// The socket that the kubelet uses. Accepts connections and relays every call, bytes as they are,
// to the runtime that serves it. Loop's thread only.
class Relay {
 public:
  // What is kept for all calls at once: requests that are read, until they have left, what they
  // become when decompressed, header fields, and the calls themselves. Together with all else that
  // is held (h2::Memory) it is kept below h2::kMuchHeld, but it may always be kLeastHeld.
  static constexpr size_t kLeastHeld = size_t{8} * 1024 * 1024;
  // And a connection may always hold so much: some ordinary calls.
  static constexpr size_t kSmallHeld = size_t{16} * 1024;
  static constexpr std::string_view kNoMemory =
      "no memory is left for so many requests at once; try again";
  // Clients on a node are a kubelet and a few tools.
  static constexpr size_t kMostClients = 1024;
  // How many clients a process can serve that may have so many files open: each takes its own
  // connection, one to each runtime and one to where the default one's images are, and something
  // else needs files, too.
  static size_t ClientsWith(size_t files, size_t runtimes = 1);

  struct Options {
    std::string runtime_socket;
    // Where image calls go; nullopt: they are not served.
    std::optional<std::string> image_socket;
    // Clients that may be connected at once; one more ends that which is idle for longest.
    size_t max_clients = kMostClients;
    // How long the calls in flight may take on shutdown.
    std::chrono::milliseconds drain_timeout{25'000};
  };

  // What calls are shown to. Not owned; each may be null and outlives the relay.
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

  // For the calls that come from now on; nullptr lets them pass. The former one outlives the calls
  // that its stages look at.
  void SetPipeline(Pipeline* pipeline) { observers_.pipeline = pipeline; }

  // Where there are several runtimes: finds that of each call from now on. It outlives the relay,
  // and Options::runtime_socket is then that of the default one.
  void SetRouter(BackendRouter* router) { router_ = router; }

  // Where handlers have aliases: the calls that come from now on may name these. They outlive the
  // relay.
  void SetAliases(HandlerAliases* aliases) { aliases_ = aliases; }

  // Whether clients listen to the runtime's container events now. The function is told when that
  // changes.
  bool clients_listen() const { return listeners_ > 0; }
  void OnClientsListen(std::function<void(bool listen)> told) {
    on_clients_listen_ = std::move(told);
  }
  // Told when a call of a method that this build does not know may have changed what a runtime
  // holds: it was forwarded, and the runtime did not say that it failed.
  void OnUnknownMethod(std::function<void()> told) { on_unknown_method_ = std::move(told); }
  // Told of the events that clients get.
  void OnEvent(std::function<void(const ContainerEvent&)> told) { on_event_ = std::move(told); }

  // Refuses what is new, waits for the calls in flight, then runs `done`, once.
  void Drain(std::function<void()> done);
  // Accepts clients again, whether or not `done` of Drain ran; it does not run any more. Those that
  // were told to go do so when their calls are over.
  void Resume(ListeningSocket listener);
  size_t connections() const { return connections_.size(); }

  // For connections and calls:
  h2::FlushQueue& flushes() { return flushes_; }
  Pipeline* pipeline() const { return observers_.pipeline; }
  AdjustmentSuffix& suffix() { return suffix_; }
  BackendRouter* router() const { return router_; }
  HandlerAliases* aliases() const { return aliases_; }
  CallCounts& counts() { return counts_; }
  // A client's call to listen to events begins, or is over.
  void AddListener();
  void RemoveListener();
  void NoteEvent(const ContainerEvent& event) {
    if (on_event_) on_event_(event);
  }
  void NoteUnknownMethod() {
    if (on_unknown_method_) on_unknown_method_();
  }
  // Null when the dump does not have this call.
  std::unique_ptr<CallTap> MakeTap(const Method& method, bool intercepted);
  // The same memory for the same socket, as long as the relay lives. Unimplemented: images are not
  // served here.
  StatusOr<std::string_view> SocketFor(const Method& method) const;
  // A call that should have been read could not be.
  void NoteUnread(const Method& method, std::string_view why);
  // Accounts for bytes that are kept for a call of this connection, until Release. Where there is
  // no room, calls of those connections end for which more is kept; false: it is this one.
  bool Hold(const Connection& connection, size_t bytes) {
    if (!Fits(bytes) && !MakeRoom(connection, bytes)) return false;
    held_ += bytes;
    return true;
  }
  void Release(size_t bytes) { held_ -= bytes; }
  void NoteEndForMemory(const Status& why);
  // Of a call that was ended for its memory: what it takes until its streams are closed.
  void AddEnding(size_t bytes) { ending_ += bytes; }
  void SubEnding(size_t bytes) { ending_ -= bytes; }
  // Call::Unpack in one of the next turns of the loop, in turn with all others, until it is done.
  void UnpackSoon(Call& call);
  void ForgetUnpacking(Call& call) { std::erase(unpacking_, &call); }
  // How often something happened before: an order of activities.
  uint64_t Tick() { return ++ticks_; }
  // A connection to this socket, as SocketFor gave it, was opened (1) or closed (-1).
  void CountUpstream(std::string_view socket, int change);
  // Counts the bytes of a connection, where metrics are asked for.
  void CountClientBytes(h2::Session& session);
  void CountUpstreamBytes(std::string_view socket, h2::Session& session);
  // Destroys the connection, later.
  void Remove(Connection& connection, std::string_view why);

 private:
  bool IsImageSocket(std::string_view socket) const;
  void Accept(UniqueFd socket);
  // The connection that is idle for longest, in favour of a new one.
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
  const bool one_socket_;  // for both services
  Observers observers_;
  CallCounts counts_;
  BackendRouter* router_ = nullptr;
  HandlerAliases* aliases_ = nullptr;
  AdjustmentSuffix suffix_;
  Logger& log_;
  RateLimit unread_limit_;
  RateLimit accept_limit_;
  RateLimit idle_limit_;
  RateLimit memory_limit_;
  uint64_t next_call_ = 1;
  uint64_t ticks_ = 0;
  size_t held_ = 0;
  size_t ending_ = 0;
  Connection* largest_ = nullptr;
  size_t largest_held_ = 0;
  int largest_uses_ = 0;
  std::deque<Call*> unpacking_;
  EventLoop::HandlePtr unpack_turn_;  // while there are such
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
