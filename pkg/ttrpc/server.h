// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/ttrpc/frame.h"
#include "pkg/ttrpc/multiplexer.h"

namespace resmgr::ttrpc {

// Answers the calls of one connection's peer. RESOURCE_EXHAUSTED: a request longer than
// kLongestMessage, one without room in the budget, or more than kMostRequests unanswered ones;
// INVALID_ARGUMENT: a stream id that is even or not ascending, or a malformed request;
// UNIMPLEMENTED: an unknown service or method; DEADLINE_EXCEEDED: no answer within the caller's
// timeout. Loop's thread only.
class Server final : private Multiplexer::Receiver {
 public:
  // Called once, at once or later; has no effect when the call or the server is over.
  using Reply = std::function<void(StatusOr<std::string>)>;
  // Gets the encoded request, and the caller's timeout (0: no limit). May destroy the server.
  using Method =
      std::function<void(std::string payload, std::chrono::nanoseconds timeout, Reply reply)>;
  using Methods = std::map<std::string, Method, std::less<>>;

  // All arguments but `methods` outlive the server. The connection is opened here and closed by the
  // destructor.
  Server(EventLoop& loop, Multiplexer& multiplexer, uint32_t connection, MemoryBudget& budget,
         std::string service, Methods methods);
  ~Server();

  // `overrun` runs after each request that is refused because it is too long or one too many. It
  // must not destroy the server.
  void OnOverrun(std::function<void()> overrun) { overrun_ = std::move(overrun); }

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Pending {
    MemoryBudget::Share share;
    EventLoop::HandlePtr timer;
  };

  void OnBytes(std::string_view bytes) override;
  void OnRequest(Frame frame);
  void Run(Frame frame);
  void Answer(uint32_t stream, StatusOr<std::string> response);

  EventLoop& loop_;
  Multiplexer& multiplexer_;
  const uint32_t connection_;
  const std::string service_;
  const Methods methods_;
  std::function<void()> overrun_;
  FrameReader reader_;
  uint32_t last_stream_ = 0;
  std::map<uint32_t, Pending> calls_;  // by stream
  Lifetime lifetime_;
};

}  // namespace resmgr::ttrpc
