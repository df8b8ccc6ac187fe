// SPDX-License-Identifier: Apache-2.0
#include "agent/event_series.h"

#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "agent/json.h"
#include "pkg/base/utf8.h"

namespace resmgr::agent {
namespace {

constexpr std::string_view kEvents = "/api/v1/namespaces/default/events";
// What the API server accepts (Event v1, "message").
constexpr size_t kMaxMessage = 1024;
constexpr int kEventTries = 5;

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

EventSeries::EventSeries(HttpTransport& transport, Timers& timers, std::string node,
                         std::string_view reason, Backoff::Options backoff, uint64_t seed,
                         WallClock now)
    : node_(std::move(node)),
      reason_(reason),
      now_(std::move(now)),
      delivery_(transport, timers, "writing an event", backoff, seed, kEventTries) {}

void EventSeries::Add(const std::string& message, int times) {
  count_ += times;
  message_ = Utf8Cut(message, kMaxMessage);
  if (delivery_.under_way()) {
    more_ = true;
    return;
  }
  Send();
}

void EventSeries::Send() {
  more_ = false;
  updating_ = exists_;
  if (!exists_) {
    // As client-go names them: unique as long as the clock goes on.
    const auto time =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now_().time_since_epoch());
    name_ = fmt::format("{}.{:x}", node_, time.count());
  }
  delivery_.Send(updating_ ? Update() : Creation(),
                 [this](const StatusOr<HttpReply>& reply) { Sent(reply); });
}

void EventSeries::Sent(const StatusOr<HttpReply>& reply) {
  const StatusCode code = reply.ok() ? StatusOfReply(*reply).code() : reply.status().code();
  // A creation whose reply was lost is in conflict with itself at the next try.
  exists_ = code == StatusCode::kOk || (!updating_ && code == StatusCode::kAborted);
  if (updating_ && !exists_) {
    count_ = 1;
    return Send();
  }
  if (more_) Send();
}

HttpRequest EventSeries::Creation() const {
  const std::string now = Rfc3339(now_());
  HttpRequest request;
  request.method = "POST";
  request.target = kEvents;
  request.content_type = kJsonType;
  request.body = ToText({
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", name_}, {"namespace", "default"}}},
      // A node's events bear its name as UID, since that is what `kubectl describe node` looks for.
      {"involvedObject", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node_}, {"uid", node_}}},
      {"type", "Warning"},
      {"reason", reason_},
      {"message", message_},
      {"source", {{"component", "cri-resmgr-agent"}, {"host", node_}}},
      {"firstTimestamp", now},
      {"lastTimestamp", now},
      {"count", count_},
  });
  return request;
}

HttpRequest EventSeries::Update() const {
  HttpRequest request;
  request.method = "PATCH";
  request.target = fmt::format("{}/{}", kEvents, UrlEncode(name_));
  request.content_type = "application/merge-patch+json";
  request.body =
      ToText({{"count", count_}, {"message", message_}, {"lastTimestamp", Rfc3339(now_())}});
  return request;
}

}  // namespace resmgr::agent
