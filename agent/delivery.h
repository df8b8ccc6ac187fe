// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/backoff.h"
#include "agent/http.h"
#include "pkg/log/rate_limit.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// Repeats one request until the API server takes it. A new request replaces the former one, but is
// not sent while the former one is under way: the server could carry out a request that was given
// up after the new one. Thread-compatible.
class Delivery {
 public:
  // Gets the reply of the success, or the last one.
  using Done = std::function<void(const StatusOr<HttpReply>& reply)>;

  // The reaction to a refusal of the request's content (see RefusesContent).
  enum class Refusal { kTryAgain, kEnd };

  // `what` names it in the log. `max_tries` 0: as many as it takes; else
  // what is missing (404) or in conflict (409) ends it at once.
  Delivery(HttpTransport& transport, Clock& timers, std::string what, Backoff::Options backoff,
           uint64_t seed, int max_tries);

  // Calls `done` once, but not for a request that was replaced.
  void Send(HttpRequest request, Done done, Refusal refusal = Refusal::kTryAgain);
  // As Send, but keeps the waits of a former request that is under way: a new request is no reason
  // to spare a server less that fails or asks for a pause.
  void Replace(HttpRequest request, Done done, Refusal refusal = Refusal::kTryAgain);
  bool under_way() const { return under_way_; }
  // Whether the server has a request that it has not answered.
  bool awaits_reply() const { return call_ != nullptr; }

 private:
  void Try();
  void Replied(const StatusOr<HttpReply>& reply);
  void TryAfter(std::chrono::milliseconds wait);
  void End(const StatusOr<HttpReply>& reply);

  HttpTransport& transport_;
  Clock& timers_;
  const std::string what_;
  const int max_tries_;
  Backoff backoff_;
  RateLimit log_limit_;
  HttpRequest request_;
  Done done_;
  Refusal refusal_ = Refusal::kTryAgain;
  bool under_way_ = false;
  bool replaced_ = false;  // request_ was replaced after call_ began
  bool waits_on_ = false;  // request_ took the place of one that was under way
  int tries_ = 0;
  std::unique_ptr<HttpTransport::Call> call_;
  EventLoop::HandlePtr timer_;
};

}  // namespace resmgr::agent
