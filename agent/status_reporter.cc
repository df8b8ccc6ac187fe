// SPDX-License-Identifier: Apache-2.0
#include "agent/status_reporter.h"

#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "agent/json.h"

namespace resmgr::agent {
namespace {

// All annotations of an object together may have 256 KiB.
constexpr size_t kMaxError = 8192;
// What the API server accepts (Event v1, "message").
constexpr size_t kMaxMessage = 1024;
constexpr int kEventTries = 5;

std::string Shortened(std::string text, size_t limit) {
  constexpr std::string_view kEllipsis = "...";
  if (text.size() <= limit) return text;
  size_t end = limit - kEllipsis.size();
  // Not inside a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  text.resize(end);
  return text.append(kEllipsis);
}

Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

StatusReporter::StatusReporter(HttpTransport& transport, Timers& timers, std::string node,
                               Backoff::Options backoff, uint64_t seed, WallClock now)
    : node_(std::move(node)),
      now_(std::move(now)),
      annotations_(transport, timers, "annotating the node", backoff, seed, 0),
      events_(transport, timers, "writing an event", backoff, seed + 1, kEventTries) {}

void StatusReporter::Report(const Verdict& verdict) {
  verdict_ = verdict;
  annotations_.Send(Annotations(verdict));
  const bool final =
      verdict.state == Verdict::State::kAccepted || verdict.state == Verdict::State::kRejected;
  // Another version of the same content is not an event.
  Verdict event = verdict;
  event.version.clear();
  if (!final || event == event_verdict_) return;
  event_verdict_ = std::move(event);
  events_.Send(Event(verdict));
}

void StatusReporter::Repeat() {
  if (verdict_.state != Verdict::State::kUnknown) annotations_.Send(Annotations(verdict_));
}

HttpRequest StatusReporter::Annotations(const Verdict& verdict) const {
  Json annotations = Json::object();
  annotations[std::string(kStatusAnnotation)] = ToString(verdict.state);
  annotations[std::string(kMapAnnotation)] = TextOrNull(verdict.map);
  annotations[std::string(kVersionAnnotation)] = TextOrNull(verdict.version);
  annotations[std::string(kErrorAnnotation)] = TextOrNull(Shortened(verdict.reason, kMaxError));
  HttpRequest request;
  request.method = "PATCH";
  request.target = "/api/v1/nodes/" + UrlEncode(node_);
  request.content_type = "application/merge-patch+json";
  request.body = ToText({{"metadata", {{"annotations", std::move(annotations)}}}});
  return request;
}

HttpRequest StatusReporter::Event(const Verdict& verdict) const {
  const bool accepted = verdict.state == Verdict::State::kAccepted;
  const std::string message =
      accepted ? fmt::format("cri-resmgr runs the configuration of ConfigMap {}", verdict.map)
               : fmt::format("cri-resmgr keeps its configuration: {}", Complaint(verdict));
  const std::string now = Rfc3339(now_());
  HttpRequest request;
  request.method = "POST";
  request.target = "/api/v1/namespaces/default/events";
  request.content_type = "application/json";
  request.body = ToText({
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"generateName", node_ + "."}, {"namespace", "default"}}},
      // A node's events bear its name as UID, since that is what `kubectl describe node` looks for.
      {"involvedObject", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node_}, {"uid", node_}}},
      {"type", accepted ? "Normal" : "Warning"},
      {"reason", accepted ? "ConfigAccepted" : "ConfigRejected"},
      {"message", Shortened(message, kMaxMessage)},
      {"source", {{"component", "cri-resmgr-agent"}, {"host", node_}}},
      {"firstTimestamp", now},
      {"lastTimestamp", now},
      {"count", 1},
  });
  return request;
}

}  // namespace resmgr::agent
