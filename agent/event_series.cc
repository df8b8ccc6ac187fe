// SPDX-License-Identifier: Apache-2.0
#include "agent/event_series.h"

#include <utility>

#include <absl/time/time.h>
#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/percent.h"
#include "pkg/base/utf8.h"
#include "pkg/kube/report_limits.h"

namespace resmgr::agent {
namespace {

EventObject WarningOf(const std::string& node, std::string_view reason) {
  return {
      .event_namespace = "default",
      .about = NodeOfEvent(node),
      .source = std::string(kAgentName),
      .node = node,
      .warning = true,
      .reason = std::string(reason),
      .count = 0,
  };
}

// Leaves room in a name, which may have 253 bytes, for the time with its dot (17 bytes).
constexpr size_t kMaxSubject = 200;

std::string Rfc3339(EventObject::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

std::string Collection(const EventObject& event) {
  return fmt::format("/api/v1/namespaces/{}/events", PercentEncoded(event.event_namespace));
}

}  // namespace

EventSeries::EventSeries(HttpTransport& transport, Clock& timers, const std::string& node,
                         std::string_view reason, Backoff::Options backoff, uint64_t seed,
                         WallClock now)
    : now_(std::move(now)),
      event_(WarningOf(node, reason)),
      delivery_(transport, timers, "writing an event", backoff, seed, kEventTries) {}

void EventSeries::Add(const std::string& message, int times) {
  event_.count += times;
  event_.message = Utf8Cut(message, kLongestEventMessage);
  if (delivery_.under_way()) {
    more_ = true;
    return;
  }
  Send();
}

void EventSeries::Send() {
  more_ = false;
  updating_ = exists_;
  event_.last = now_();
  if (!exists_) {
    event_.name = EventName(event_.node, event_.last);
    event_.first = event_.last;
  }
  delivery_.Send(updating_ ? event_.Update() : event_.Creation(),
                 [this](const StatusOr<HttpReply>& reply) { Sent(reply); });
}

void EventSeries::Sent(const StatusOr<HttpReply>& reply) {
  const StatusCode code = StatusOfReply(reply).code();
  if (updating_) {
    // After any other error the Event is there, and the next update tells the whole count.
    exists_ = code != StatusCode::kNotFound;
    if (!exists_) {
      event_.count = 1;
      return Send();
    }
  } else {
    // If only the reply to a creation was lost, its repetition conflicts: the Event exists.
    exists_ = code == StatusCode::kOk || code == StatusCode::kAborted;
  }
  if (more_) Send();
}

HttpRequest EventObject::Creation() const {
  return RequestWith("POST", Collection(*this),
                     {{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", name}, {"namespace", event_namespace}}},
                      {"involvedObject", about},
                      {"type", warning ? "Warning" : "Normal"},
                      {"reason", reason},
                      {"message", message},
                      {"source", {{"component", source}, {"host", node}}},
                      {"firstTimestamp", Rfc3339(first)},
                      {"lastTimestamp", Rfc3339(last)},
                      {"count", count}});
}

HttpRequest EventObject::Update() const {
  return RequestWith("PATCH", fmt::format("{}/{}", Collection(*this), PercentEncoded(name)),
                     {{"count", count}, {"message", message}, {"lastTimestamp", Rfc3339(last)}},
                     kMergePatch);
}

Json NodeOfEvent(const std::string& node) {
  return {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node}};
}

std::string EventName(std::string_view subject, EventObject::Time now) {
  subject = subject.substr(0, kMaxSubject);
  // Each part between dots ends with a letter or digit.
  while (subject.ends_with('.') || subject.ends_with('-'))
    subject.remove_suffix(1);
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch());
  return fmt::format("{}.{:x}", subject, time.count());
}

}  // namespace resmgr::agent
