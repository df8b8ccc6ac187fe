// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/acceptor.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// Serves unary gRPC methods (PROTOCOL-HTTP2.md of gRPC) on a unix socket (0660), on the loop, and
// methods that answer with a stream. For the few calls of an agent or of cri-resmgr-ctl a gRPC
// library with its threads would cost more memory than the rest of the daemon, and its server
// bounds neither connections nor their memory. A client may have as many calls open as the session
// announces (h2::kOurMaxConcurrentStreams), since gRPC libraries queue only what goes beyond that.
// Loop's thread only.
class UnaryServer {
 public:
  // Called once, at once or later, on the loop; has no effect after the client has left.
  using Reply = std::function<void(StatusOr<std::string>)>;
  using Method = std::function<void(std::string message, Reply reply)>;
  // Methods by path, "/v1.Config/SetConfig". Calls of other paths get UNIMPLEMENTED.
  using Methods = std::map<std::string, Method, std::less<>>;

  // A method with a stream of answers, from when it is called until the client leaves or an error
  // is sent. `Send` may be called at any time, on the loop, and returns false once the stream has
  // ended. The last answer replaces those that wait because the client reads too slowly.
  using Send = std::function<bool(StatusOr<std::string>)>;
  using Stream = std::function<void(std::string message, Send send)>;
  using Streams = std::map<std::string, Stream, std::less<>>;

  // Limits of a request, as sent and when decompressed. Our clients do not compress, so a
  // compressed request may take no more of the loop's time than a ConfigMap needs.
  static constexpr size_t kMaxRequest = size_t{8} << 20;
  static constexpr size_t kMaxDecompressed = size_t{1} << 20;
  // Limit of bytes of all requests and unread answers; above it calls get RESOURCE_EXHAUSTED.
  static constexpr size_t kMaxHeld = size_t{32} << 20;
  // Limit of connections. One more disconnects the client idle the longest.
  static constexpr size_t kMaxClients = 64;

  // Accesses the file system. kAlreadyExists: another instance serves the socket.
  static StatusOr<std::unique_ptr<UnaryServer>> Create(EventLoop& loop, h2::FlushQueue& flushes,
                                                       const std::string& socket, Methods methods);
  // Uses a socket that was created before, perhaps on another thread.
  UnaryServer(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener, Methods methods,
              Streams streams = {});
  ~UnaryServer();
  UnaryServer(const UnaryServer&) = delete;
  UnaryServer& operator=(const UnaryServer&) = delete;

 private:
  class Client;
  class Call;

  void Accept(UniqueFd socket);
  void EndLongestIdle();
  void Remove(Client& client);
  uint64_t Tick() { return ++ticks_; }

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  const Methods methods_;
  const Streams streams_;
  Acceptor acceptor_;
  RateLimit log_limit_;
  uint64_t ticks_ = 0;  // orders clients by last activity
  size_t held_ = 0;     // bytes, counted for kMaxHeld
  std::list<std::unique_ptr<Client>> clients_;
  DestroyLater<std::unique_ptr<Client>> removed_;
};

}  // namespace resmgr
