// SPDX-License-Identifier: Apache-2.0
#include "agent/event_series.h"

#include <utility>

#include "pkg/base/utf8.h"

namespace resmgr::agent {
namespace {

constexpr int kEventTries = 5;

// A node's events have its name as UID, since `kubectl describe node` looks for that.
EventObject WarningOf(const std::string& node, std::string_view reason) {
  return {
      .event_namespace = "default",
      .about = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node}},
      .source = "cri-resmgr-agent",
      .node = node,
      .warning = true,
      .reason = std::string(reason),
      .count = 0,
  };
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
  event_.message = Utf8Cut(message, kMaxEventMessage);
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
  const StatusCode code = reply.ok() ? StatusOfReply(*reply).code() : reply.status().code();
  // A repeated creation conflicts with its first try if only the reply was lost.
  exists_ = code == StatusCode::kOk || (!updating_ && code == StatusCode::kAborted);
  if (updating_ && !exists_) {
    event_.count = 1;
    return Send();
  }
  if (more_) Send();
}

}  // namespace resmgr::agent
