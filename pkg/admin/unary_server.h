// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// Serves unary gRPC methods on a unix socket (0660), on the loop: for the few calls of an agent or
// of cri-resmgr-ctl a gRPC library with threads of its own would cost more memory than the rest of
// the daemon. Loop's thread only.
class UnaryServer {
 public:
  // To be called once, at once or later, on the loop; after the client went away it does nothing.
  using Reply = std::function<void(StatusOr<std::string>)>;
  using Method = std::function<void(std::string message, Reply reply)>;
  // By path: "/v1.Config/SetConfig". Others are UNIMPLEMENTED.
  using Methods = std::map<std::string, Method, std::less<>>;

  // The longest request, also after it was decompressed.
  static constexpr size_t kMaxRequest = size_t{8} << 20;

  // AlreadyExists: another instance serves the socket.
  static StatusOr<std::unique_ptr<UnaryServer>> Create(EventLoop& loop, h2::FlushQueue& flushes,
                                                       const std::string& socket, Methods methods);
  ~UnaryServer();
  UnaryServer(const UnaryServer&) = delete;
  UnaryServer& operator=(const UnaryServer&) = delete;

 private:
  class Client;
  class Call;

  UnaryServer(EventLoop& loop, h2::FlushQueue& flushes, ListeningSocket listener, Methods methods);
  void Accept();
  void Remove(Client& client);

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  const Methods methods_;
  ListeningSocket listener_;
  EventLoop::HandlePtr accept_watch_;
  EventLoop::HandlePtr accept_pause_;
  std::list<std::unique_ptr<Client>> clients_;
};

}  // namespace resmgr
