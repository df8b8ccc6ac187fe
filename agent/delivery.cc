// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery.h"

#include <utility>

#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

constexpr std::chrono::seconds kLogPeriod{60};

}  // namespace

Delivery::Delivery(HttpTransport& transport, Clock& timers, std::string what,
                   Backoff::Options backoff, uint64_t seed, int max_tries)
    : transport_(transport),
      timers_(timers),
      what_(std::move(what)),
      max_tries_(max_tries),
      backoff_(backoff, seed),
      log_limit_(1, kLogPeriod) {}

void Delivery::Send(HttpRequest request, Done done, Refusal refusal) {
  request_ = std::move(request);
  done_ = std::move(done);
  refusal_ = refusal;
  under_way_ = true;
  tries_ = 0;
  backoff_.Reset();
  timer_.reset();
  waits_on_ = false;
  replaced_ = call_ != nullptr;
  if (!replaced_) Try();
}

void Delivery::Replace(HttpRequest request, Done done, Refusal refusal) {
  if (!under_way_) return Send(std::move(request), std::move(done), refusal);
  request_ = std::move(request);
  done_ = std::move(done);
  refusal_ = refusal;
  waits_on_ = true;
  replaced_ = call_ != nullptr;
}

void Delivery::Try() {
  ++tries_;
  call_ = transport_.Send(request_, nullptr,
                          [this](const StatusOr<HttpReply>& reply) { Replied(reply); });
}

void Delivery::Replied(const StatusOr<HttpReply>& reply) {
  call_.reset();
  const std::chrono::milliseconds asked =
      reply.ok() ? WaitAskedFor(*reply) : std::chrono::seconds(0);
  const Status status = reply.ok() ? StatusOfReply(*reply) : reply.status();
  if (std::exchange(replaced_, false)) {
    const bool fails = !reply.ok() || status.code() == StatusCode::kUnavailable;
    return TryAfter(asked + (fails && waits_on_ ? backoff_.Next() : std::chrono::milliseconds(0)));
  }
  if (status.ok()) return End(reply);
  Logger& log = GetLogger("status");
  const bool answered =
      status.code() == StatusCode::kNotFound || status.code() == StatusCode::kAborted;
  if (max_tries_ > 0 && answered) return End(reply);
  if (refusal_ == Refusal::kEnd && reply.ok() && RefusesContent(*reply)) return End(reply);
  if (tries_ == max_tries_) {
    log.Warn("{}: given up: {}", what_, Message(status));
    return End(reply);
  }
  if (log_limit_.Pass(timers_.Steady())) log.Warn("{}: {}; trying again", what_, Message(status));
  TryAfter(backoff_.Next() + asked);
}

void Delivery::TryAfter(std::chrono::milliseconds wait) {
  if (wait.count() == 0) return Try();
  timer_ = timers_.After(wait, [this] { Try(); });
}

void Delivery::End(const StatusOr<HttpReply>& reply) {
  under_way_ = false;
  if (const Done done = std::exchange(done_, nullptr)) done(reply);
}

}  // namespace resmgr::agent
