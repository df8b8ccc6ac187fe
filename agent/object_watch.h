// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "agent/backoff.h"
#include "agent/http.h"
#include "agent/json.h"
#include "agent/timers.h"
#include "agent/watch_decoder.h"
#include "pkg/log/rate_limit.h"

namespace resmgr::agent {

// How requests to the API server are repeated.
struct RetryOptions {
  Backoff::Options backoff{};
  // How long the server should let one watch live; each time between once and twice of it.
  std::chrono::seconds watch_timeout{300};
  uint64_t seed = 0;
};

// Follows one object by its name: lists it, then watches from that version on, and does both again
// as often as it takes. Needs the verbs get, list and watch for that name alone, since the field
// selector metadata.name makes every request one for the name. Thread-compatible.
//
//   list ──▶ watch ──▶ stream ends or breaks ──▶ wait ──▶ watch from the last version seen
//    ▲                 410 Gone, or no success three times ──▶ wait ──▶ list
//    └────────────────────────────────────────────────────────────────┘
class ObjectWatch {
 public:
  struct Target {
    std::string collection{};  // path, "/api/v1/nodes"
    std::string name{};
  };
  // The object as it is now; nullptr: there is none. The first call is the first complete view.
  // Calls may repeat what is known. The receiver may not end this object from within.
  using Changed = std::function<void(const Json* object)>;

  ObjectWatch(HttpTransport& transport, Timers& timers, Target target, const RetryOptions& options,
              Changed changed);

  void Start() { List(); }

 private:
  void List();
  void Listed(const StatusOr<HttpReply>& reply);
  Status ReadList(const HttpReply& reply);
  void Watch();
  void Data(std::string_view piece);
  bool Event(const WatchEvent& event);
  void Ended(const StatusOr<HttpReply>& reply);
  void Wait(const Status& why, std::chrono::milliseconds at_least);
  std::string Selector() const;
  bool IsTarget(const Json& object) const;

  HttpTransport& transport_;
  Timers& timers_;
  const Target target_;
  const RetryOptions options_;
  const Changed changed_;
  Backoff backoff_;
  std::mt19937_64 random_;
  RateLimit log_limit_;
  StatusCode logged_ = StatusCode::kOk;

  std::string version_;  // the last one seen; empty: list
  WatchDecoder decoder_;
  Timers::Clock::time_point watch_began_{};
  std::unique_ptr<HttpTransport::Call> call_;
  Timers::HandlePtr timer_;
};

}  // namespace resmgr::agent
