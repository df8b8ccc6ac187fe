// SPDX-License-Identifier: Apache-2.0
#include "agent/http.h"

#include <algorithm>
#include <utility>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

constexpr int kBadRequest = 400;
constexpr int kForbidden = 403;
constexpr int kMissing = 404;
constexpr int kConflict = 409;
constexpr int kGone = 410;
constexpr int kTooLarge = 413;
constexpr int kUnprocessable = 422;
constexpr int kTooManyRequests = 429;

StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case kUnauthorized:
    case kForbidden:
      return StatusCode::kPermissionDenied;
    case kMissing:
      return StatusCode::kNotFound;
    case kConflict:
      return StatusCode::kAborted;
    case kGone:
      return StatusCode::kOutOfRange;
    case kTooManyRequests:
      return StatusCode::kUnavailable;
    default:
      return http_status / 100 == 4 ? StatusCode::kInvalidArgument : StatusCode::kUnavailable;
  }
}

constexpr std::chrono::seconds kLogPeriod{60};

}  // namespace

HttpRequest RequestWith(std::string method, std::string target, const Json& body,
                        std::string_view content_type) {
  return {.method = std::move(method),
          .target = std::move(target),
          .content_type = std::string(content_type),
          .body = JsonText(body)};
}

HttpRequest Deletion(std::string target, const Json& preconditions) {
  return RequestWith(
      "DELETE", std::move(target),
      {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", preconditions}});
}

std::string MetadataOnly(std::string_view kind) {
  return fmt::format("{};as={};g=meta.k8s.io;v=v1,{}", kJsonType, kind, kJsonType);
}

std::chrono::seconds WaitAskedFor(const HttpReply& reply) {
  constexpr std::chrono::seconds kLongest{60};
  return std::min(reply.retry_after.value_or(std::chrono::seconds(0)), kLongest);
}

bool RefusesContent(const HttpReply& reply) {
  return reply.status == kBadRequest || reply.status == kForbidden || reply.status == kTooLarge ||
         reply.status == kUnprocessable;
}

Status StatusOfReply(const HttpReply& reply) {
  if (reply.status / 100 == 2) return OkStatus();
  std::string words;
  if (const auto json = ParseJson(reply.body)) words = TextAt(*json, {"message"});
  if (words.empty()) words = reply.body;
  return MakeStatus(CodeOf(reply.status),
                    fmt::format("the API server answers {}: {}", reply.status, Printable(words)));
}

Status StatusOfReply(const StatusOr<HttpReply>& reply) {
  return reply.ok() ? StatusOfReply(*reply) : reply.status();
}

void OpenCalls::Send(HttpRequest request, Done done) {
  const uint64_t id = ++last_id_;
  calls_[id] =
      transport_.Send(std::move(request), nullptr,
                      [this, id, done = std::move(done)](const StatusOr<HttpReply>& reply) {
                        const Done receiver = done;  // outlives the call
                        calls_.erase(id);
                        receiver(reply);
                      });
}

Delivery::Delivery(HttpTransport& transport, Clock& timers, std::string what,
                   Backoff::Options backoff, uint64_t seed, int max_tries)
    : transport_(transport),
      timers_(timers),
      what_(std::move(what)),
      max_tries_(max_tries),
      backoff_(backoff, seed),
      log_limit_(1, kLogPeriod) {}

void Delivery::Take(HttpRequest request, Done done, Refusal refusal, Wanted wanted) {
  request_ = std::move(request);
  done_ = std::move(done);
  refusal_ = refusal;
  wanted_ = std::move(wanted);
  replaced_ = call_ != nullptr;
}

void Delivery::Send(HttpRequest request, Done done, Refusal refusal, Wanted wanted) {
  Take(std::move(request), std::move(done), refusal, std::move(wanted));
  under_way_ = true;
  tries_ = 0;
  backoff_.Reset();
  timer_.reset();
  waits_on_ = false;
  if (!replaced_) Try();
}

void Delivery::Replace(HttpRequest request, Done done, Refusal refusal, Wanted wanted) {
  if (!under_way_) return Send(std::move(request), std::move(done), refusal, std::move(wanted));
  Take(std::move(request), std::move(done), refusal, std::move(wanted));
  waits_on_ = true;
}

void Delivery::Try() {
  if (wanted_ && !wanted_())
    return End(MakeStatus(StatusCode::kCancelled, fmt::format("{}: not wanted any more", what_)));
  ++tries_;
  call_ = transport_.Send(request_, nullptr,
                          [this](const StatusOr<HttpReply>& reply) { Replied(reply); });
}

void Delivery::Replied(const StatusOr<HttpReply>& reply) {
  call_.reset();
  const std::chrono::milliseconds asked =
      reply.ok() ? WaitAskedFor(*reply) : std::chrono::seconds(0);
  const Status status = StatusOfReply(reply);
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
