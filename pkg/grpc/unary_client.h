// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/h2/session.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// Makes the daemon's own unary gRPC calls over one connection. Loop's thread only. Callbacks never
// run inside the function that was given them.
class UnaryClient final : private h2::Session::Owner {
 public:
  // Bytes; a longer answer fails its call. A runtime's lists of a full node have about a megabyte.
  static constexpr size_t kMaxReply = size_t{64} * 1024 * 1024;

  UnaryClient(EventLoop& loop, h2::FlushQueue& flushes, std::string socket_path,
              size_t max_reply = kMaxReply);
  ~UnaryClient() override;

  // kUnavailable names the socket. `on_disconnect` runs once when the connection ends, after all
  // calls on it failed.
  Status Connect(std::function<void(const Status&)> on_disconnect);
  // Uses a socket that was connected elsewhere, for example on a thread that may wait for a file
  // system.
  void Connect(UniqueFd socket, std::function<void(const Status&)> on_disconnect);
  bool connected() const { return session_ != nullptr; }
  // `leaves` runs, on each connection, when the peer takes no more calls and ends once the open
  // ones have ended.
  void OnPeerLeaves(std::function<void()> leaves) { on_peer_leaves_ = std::move(leaves); }

  using Done = std::function<void(StatusOr<std::string>)>;
  // `path` is "/package.Service/Method", `message` the request's bytes. Yields the reply's bytes,
  // or the server's status, kUnavailable without a connection, kDeadlineExceeded after the timeout.
  void Call(std::string_view path, std::string_view message, std::chrono::milliseconds timeout,
            Done done);
  // Begins a call without a deadline whose answers go to `handler`: sends `message` and the end.
  // nullptr without a connection, or when the peer takes no more calls.
  std::unique_ptr<h2::Stream> OpenStream(std::string_view path, std::string_view message,
                                         h2::StreamHandler& handler);

 private:
  class PendingCall;

  std::unique_ptr<h2::Stream> Send(std::string_view path, std::string_view message,
                                   std::optional<std::chrono::milliseconds> timeout,
                                   h2::StreamHandler& handler);
  void OnRequest(std::unique_ptr<h2::Stream>, const h2::HeaderBlock&, bool) override {}
  void OnGoAway() override {
    if (on_peer_leaves_) on_peer_leaves_();
  }
  void OnDisconnect(const Status& reason) override;
  void Finish(PendingCall& call, StatusOr<std::string> result);

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  std::string socket_path_;
  const size_t max_reply_;
  std::unique_ptr<h2::Session> session_;
  DestroyLater<std::unique_ptr<h2::Session>> lost_{loop_};
  std::unordered_map<PendingCall*, std::unique_ptr<PendingCall>> calls_;
  std::function<void(const Status&)> on_disconnect_;
  std::function<void()> on_peer_leaves_;
  // Posted work of a client that is gone must not run.
  Lifetime lifetime_;
};

struct UnaryAnswer {
  Status connected{};
  StatusOr<std::string> reply = Unavailable("no answer");
};
// Connects, makes one call and waits for its end, on an event loop of its own: for programs that do
// nothing else meanwhile.
UnaryAnswer AskUnary(const std::string& socket, std::string_view path, std::string_view message,
                     std::chrono::milliseconds timeout);

}  // namespace resmgr
