// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Calls to the agent, one at a time over a connection of their own. An agent that is not there,
// hangs or fails is tried again, with growing pauses and over a new connection each time, so that
// nothing piles up. Loop's thread only.
class AgentCalls {
 public:
  struct Times {
    std::chrono::milliseconds first_pause{250};
    std::chrono::milliseconds longest_pause{30'000};
    std::chrono::milliseconds timeout{10'000};  // of a call
  };
  struct Options {
    std::string socket{};
    Times times{};
    std::string complaint{};  // for the log, once, where the agent cannot be reached
    // Begins a series of calls that ends with Done or Failed, or does nothing if the agent needs no
    // report.
    std::function<void()> begin{};
    // The connection to the agent is lost, with the call under way; another agent may come.
    std::function<void()> lost{};
  };

  AgentCalls(EventLoop& loop, h2::FlushQueue& flushes, Options options);

  // Both begin a series unless one is under way: Begin at once, also within a pause; BeginSoon in
  // the next turn of the loop, except within a pause.
  void Begin();
  void BeginSoon();
  // The next failure is followed by the first pause.
  void ForgetFailures() { pauses_.Reset(); }

  // A call of a series. `done` is not run where the connection is lost before the reply.
  void Call(std::string_view method, std::string_view message, UnaryClient::Done done);
  // The series is over, and the next may begin. `well`: the agent did what it was asked for.
  void Done(bool well);
  // The agent cannot do it now.
  void Failed(const Status& why);

 private:
  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Logger& log_;
  const Options options_;
  std::unique_ptr<UnaryClient> client_;  // until the agent goes
  bool calling_ = false;
  bool complained_ = false;
  Backoff pauses_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr
