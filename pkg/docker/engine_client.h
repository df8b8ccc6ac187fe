// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/engine_request.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::docker {

// Our own requests to dockerd: each has a connection of its own, and few are under way at a time.
// Loop's thread only.
class EngineClient {
 public:
  static constexpr size_t kParallel = 8;
  // Of a reply. 10,000 containers take some 20 MiB in a list.
  static constexpr size_t kMaxReply = size_t{64} * 1024 * 1024;

  struct Reply {
    int status = 0;
    std::string body;
  };
  // Unavailable: no connection. DeadlineExceeded: no whole reply in time. Not run inside Call, nor
  // after the end of this.
  using Done = std::function<void(StatusOr<Reply>)>;

  EngineClient(EventLoop& loop, std::string socket);
  ~EngineClient();
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // `body`: JSON; "": none. The time in the queue is not of the deadline.
  void Call(std::string_view method, std::string_view target, std::string body,
            std::chrono::milliseconds deadline, Done done);

 private:
  struct Running;
  struct Waiting {
    std::string bytes;
    std::chrono::milliseconds deadline;
    Done done;
  };

  void StartWaiting();
  void Finish(Running& running, const Status& status);

  EventLoop& loop_;
  const std::string socket_;
  std::deque<Waiting> waiting_;
  std::list<std::unique_ptr<Running>> running_;
  EventLoop::HandlePtr starting_;
  Lifetime lifetime_;
};

// Unavailable names the socket.
StatusOr<UniqueFd> ConnectEngine(const std::string& socket);

// What dockerd says in an error's body, or the number of its status; OK for a success.
Status ReplyStatus(const EngineClient::Reply& reply);

}  // namespace resmgr::docker
