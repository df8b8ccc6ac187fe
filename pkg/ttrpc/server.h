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

// Answers the calls of one connection's peer. A request longer than kLongestMessage, one for which
// the budget has no room, and one beyond kMostRequests that are not answered get
// RESOURCE_EXHAUSTED; a stream id that is even or not higher than those before, or bytes that are
// no request, INVALID_ARGUMENT; an unknown service or method UNIMPLEMENTED; one that is not
// answered in the time that its caller waits, DEADLINE_EXCEEDED. Loop's thread only.
class Server final : private Multiplexer::Receiver {
 public:
  // To be called once, at once or later; does nothing when the call or the server is over.
  using Reply = std::function<void(StatusOr<std::string>)>;
  // The encoded request, and what the caller waits for the answer (0: for ever). May destroy the
  // server.
  using Method =
      std::function<void(std::string payload, std::chrono::nanoseconds timeout, Reply reply)>;
  using Methods = std::map<std::string, Method, std::less<>>;

  // All but `methods` outlive the server. The connection is opened here and closed by the
  // destructor.
  Server(EventLoop& loop, Multiplexer& multiplexer, uint32_t connection, MemoryBudget& budget,
         std::string service, Methods methods);
  ~Server();

  // `overrun` runs after each request that is refused since it is one too many, or too long. It
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
