// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace resmgr {

// Starts a thread for blocking work beside the event loop's thread. Signals go to the other
// threads. `name` has at most 15 bytes. Throws std::system_error if no thread can be made.
std::thread StartThread(const char* name, std::function<void()> run);

// Runs `ask`, which may never return (if a disk hangs), before there is an event loop, on a thread
// named `name` (at most 15 bytes). nullopt if no answer comes in time; then the thread is left
// behind, so `ask` must own all that it uses.
template <typename Answer>
std::optional<Answer> AnswerWithin(std::chrono::milliseconds patience, const char* name,
                                   std::function<Answer()> ask) {
  const auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  std::thread thread =
      StartThread(name, [promise, ask = std::move(ask)] { promise->set_value(ask()); });
  const bool answered = answer.wait_for(patience) == std::future_status::ready;
  answered ? thread.join() : thread.detach();
  if (!answered) return std::nullopt;
  return answer.get();
}

}  // namespace resmgr
