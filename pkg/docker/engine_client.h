// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/http_message.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::docker {

// The bytes of a request. It uses HTTP/1.0, so that dockerd sends the body unchunked, up to the end
// of the connection. `body`: JSON; "": none.
std::string MakeRequest(std::string_view method, std::string_view target, std::string_view body);

// One request of the daemon on its own connection; the reply is reported as it arrives. Loop's
// thread only.
class EngineRequest {
 public:
  struct Events {
    std::function<void(int status)> on_head;
    std::function<void(std::string_view bytes)> on_body;
    // Called once, after all other events. OK: the reply is complete; kUnavailable: it is not.
    std::function<void(const Status& status)> on_end;
  };

  // `connection` leads to dockerd. No event is called within the constructor. Each event may
  // destroy this object.
  EngineRequest(EventLoop& loop, UniqueFd connection, std::string bytes, Events events);
  EngineRequest(const EngineRequest&) = delete;
  EngineRequest& operator=(const EngineRequest&) = delete;

 private:
  void OnEvents(int events);
  void Write();
  void Read();
  // False: an event has destroyed this object.
  bool Take(std::string_view bytes);
  void End(const Status& status);

  const Events events_;
  std::string out_;
  std::string head_;  // the beginning of the head until all of it has arrived
  HeadFinder finder_;
  BodyScanner body_;
  bool in_body_ = false;
  UniqueFd fd_;
  EventLoop::HandlePtr watch_;
  Lifetime lifetime_;
};

// The daemon's own requests to dockerd: each has its own connection, and a limited number are under
// way at a time. Loop's thread only.
class EngineClient {
 public:
  static constexpr size_t kParallel = 8;
  static constexpr std::chrono::milliseconds kCallTimeout{10'000};
  // Limit of a reply in bytes. A list of 10,000 containers has some 20 MiB.
  static constexpr size_t kMaxReply = size_t{64} * 1024 * 1024;
  // The same for all replies that arrive, together.
  static constexpr size_t kMaxReplies = kParallel * kMaxReply;

  struct Reply {
    int status = 0;
    std::string body;
  };
  // kUnavailable: no connection. kDeadlineExceeded: no whole reply in time. Never called within
  // Call, nor after this object's end.
  using Done = std::function<void(StatusOr<Reply>)>;

  // `parallel`: how many are under way at a time. `max_replies`: bytes.
  EngineClient(EventLoop& loop, std::string socket, size_t parallel = kParallel,
               size_t max_replies = kMaxReplies);
  ~EngineClient();
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // `body`: JSON; "": none. Time in the queue does not count against the deadline. Where `caller`
  // is given and has ended, the call is left out if it still waits, and given up if others need
  // its room.
  void Call(std::string_view method, std::string_view target, std::string_view body,
            std::chrono::milliseconds deadline, Done done,
            std::optional<std::weak_ptr<void>> caller = {});
  // As Call, for callers that need only the body (Get) or the status (Do) of a success: an error
  // reply becomes a status.
  void Get(std::string_view target, std::function<void(StatusOr<std::string> body)> done);
  void Do(std::string_view method, std::string_view target, std::string_view body,
          std::function<void(Status)> done, std::chrono::milliseconds deadline = kCallTimeout);

 private:
  using Caller = std::optional<std::weak_ptr<void>>;
  struct Running;
  struct Waiting {
    std::string bytes;
    std::chrono::milliseconds deadline;
    Done done;
    Caller caller;
  };

  void StartWaiting();
  // Whether the replies that arrive have more bytes than they may.
  bool HoldsTooMuch() const;
  void Finish(Running& running, const Status& status);

  EventLoop& loop_;
  const std::string socket_;
  const size_t parallel_;
  const size_t max_replies_;
  std::deque<Waiting> waiting_;
  std::list<std::unique_ptr<Running>> running_;
  EventLoop::HandlePtr starting_;
  Lifetime lifetime_;
};

// kUnavailable names the socket.
StatusOr<UniqueFd> ConnectEngine(const std::string& socket);

// The message in an error's body, or else its status number; OK for a success.
Status ReplyStatus(const EngineClient::Reply& reply);

}  // namespace resmgr::docker
