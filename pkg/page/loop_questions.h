// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "pkg/base/status.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Asks objects on the event loop from other threads. An answer is reused for a while, and threads
// with the same question wait for the same answer, so that many readers cost the loop no more than
// one. Thread-safe, except Open and Close.
class LoopQuestions {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::chrono::milliseconds deadline{1000};  // for the loop's answer
    std::chrono::milliseconds fresh{500};      // how long an answer is reused
    size_t kept = 32;                          // kept answers
    size_t under_way = 8;  // questions to the loop without an answer, also abandoned ones
    size_t waiting = 8;    // waiting threads
    size_t a_second = 50;  // questions to the loop in a second
  };
  using Text = std::shared_ptr<const std::string>;

  explicit LoopQuestions(Limits limits);

  // The loop must exist until Close, which drops the methods and ends all waits. Loop's thread
  // only.
  void Open(EventLoop& loop, UnaryServer::Methods methods);
  void Close();

  // Calls the method with the message on the loop, and waits.
  // kUnavailable        before Open, after Close, and when the loop is late
  // kResourceExhausted  a limit is reached
  // other codes         the method's own
  StatusOr<Text> Ask(const std::string& method, const std::string& message);

 private:
  struct Question {
    bool answered = false;
    StatusOr<Text> answer = Text();
    Clock::time_point asked{};
  };
  struct State;

  static void AskOnLoop(const std::shared_ptr<State>& state, const std::string& method,
                        const std::string& message, const std::shared_ptr<Question>& question);

  // Shared with tasks that wait on the loop.
  const std::shared_ptr<State> state_;
};

}  // namespace resmgr
