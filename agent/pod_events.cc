// SPDX-License-Identifier: Apache-2.0
#include "agent/pod_events.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/base/utf8.h"
#include "pkg/kube/names.h"
#include "pkg/kube/report_limits.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

constexpr std::string_view kCombined = "(combined from similar events): ";
constexpr size_t kMaxUid = 128;
constexpr size_t kMaxReason = 64;
// Limit per pod; the daemon uses a handful.
constexpr size_t kMaxReasons = 16;

bool IsOfNode(const PodEvent& event) {
  return event.pod_namespace().empty() && event.pod().empty() && event.uid().empty();
}

EventObject::Time LastOf(const PodEvent& event) {
  return EventObject::Time(std::chrono::milliseconds(event.last_seen()));
}

bool IsUid(std::string_view uid) {
  return !uid.empty() && uid.size() <= kMaxUid &&
         std::ranges::all_of(uid, [](char c) { return IsLetterOrDigit(c) || c == '-'; });
}

bool IsReason(std::string_view reason) {
  return !reason.empty() && reason.size() <= kMaxReason && reason[0] >= 'A' && reason[0] <= 'Z' &&
         std::ranges::all_of(reason, IsLetterOrDigit);
}

// A slash separates the parts, since neither names nor UIDs have one.
std::string PodKey(const PodEvent& event) {
  return fmt::format("{}/{}/{}", event.pod_namespace(), event.pod(), event.uid());
}

Status CheckPod(const PodEvent& event) {
  if (!IsSubdomain(event.pod_namespace())) {
    return InvalidArgument("\"{}\" is not the name of a namespace",
                           Printable(event.pod_namespace(), 64));
  }
  if (!IsSubdomain(event.pod())) {
    return InvalidArgument("\"{}\" is not the name of a pod", Printable(event.pod(), 64));
  }
  if (!IsUid(event.uid()))
    return InvalidArgument("\"{}\" is not a valid UID", Printable(event.uid(), 64));
  return OkStatus();
}

std::string KindKey(const PodEvent& event) {
  return fmt::format("{}/{}", event.warning() ? "Warning" : "Normal", event.reason());
}

Json AboutOf(const PodEvent& event, const std::string& node) {
  if (IsOfNode(event)) return NodeOfEvent(node);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"namespace", event.pod_namespace()},
          {"name", event.pod()},
          {"uid", event.uid()}};
}

constexpr int kNoRight = 403;

// Whether the namespace is being deleted, in which case the API server refuses all new objects.
bool IsOfEndingNamespace(const HttpReply& reply) {
  const std::optional<Json> answer = ParseJson(reply.body);
  const Json* const causes = answer ? Find(*answer, {"details", "causes"}) : nullptr;
  return causes != nullptr && std::ranges::any_of(*causes, [](const Json& cause) {
           return TextAt(cause, {"reason"}) == "NamespaceTerminating";
         });
}

}  // namespace

Status CheckPodEvent(const PodEvent& event) {
  if (!IsOfNode(event)) {
    RESMGR_RETURN_IF_ERROR(CheckPod(event));
  }
  if (!IsReason(event.reason())) {
    return InvalidArgument("\"{}\" is not a valid reason: a reason is one word in CamelCase",
                           Printable(event.reason(), 64));
  }
  // The text must be free of control characters, so that printing it does not change it.
  const std::string& text = event.message();
  if (text.empty() || text.size() > kLongestEventMessage || Printable(text, text.size()) != text) {
    return InvalidArgument("a message has 1 to {} bytes of text without control characters",
                           kLongestEventMessage);
  }
  if (event.count() < 1) return InvalidArgument("count {}: must be at least 1", event.count());
  return OkStatus();
}

PodEvents::PodEvents(HttpTransport& transport, Clock& timers, std::string node, Options options,
                     uint64_t seed, WallClock now)
    : node_(std::move(node)),
      options_(options),
      timers_(timers),
      now_(std::move(now)),
      jitter_(seed),
      delivery_(transport, timers, "writing an event of a pod", options.backoff, seed + 1,
                kEventTries) {}

bool PodEvents::Add(const PodEvent& event) {
  PodRecord& record = RecordOf(event);
  PodEvent told = event;
  std::string key = PodKey(event) + "/" + KindKey(event);
  if (IsOneOfMany(record, event)) {
    told.set_message(Utf8Cut(std::string(kCombined) + event.message(), kLongestEventMessage));
  } else {
    key += "/" + event.message();
  }
  Known& known = KnownAs(key, told);
  known.object.count += event.count();
  known.unwritten += event.count();
  known.object.message = told.message();
  known.object.last = LastOf(event);
  if (known.waiting) return true;
  if (waiting_.size() >= options_.most_waiting) return false;
  const auto now = timers_.Steady();
  if (record.bucket.Wait(now).count() > 0) return false;
  record.bucket.Take(now);
  Wait(key, known);
  return true;
}

void PodEvents::Wait(const std::string& key, Known& known) {
  if (!std::exchange(known.waiting, true)) waiting_.push_back(key);
  known.again.reset();
  Plan();
}

PodEvents::PodRecord& PodEvents::RecordOf(const PodEvent& event) {
  const std::string key = PodKey(event);
  auto found = pods_.find(key);
  if (found == pods_.end()) {
    if (pods_.size() >= options_.most_pods) {
      pods_.erase(
          std::ranges::min_element(pods_, {}, [](const auto& entry) { return entry.second.last; }));
    }
    found = pods_.emplace(key, PodRecord{.bucket = TokenBucket(options_.per_pod)}).first;
  }
  found->second.last = timers_.Steady();
  return found->second;
}

bool PodEvents::IsOneOfMany(PodRecord& record, const PodEvent& event) {
  const std::string kind = KindKey(event);
  const auto now = timers_.Steady();
  if (!record.similar.contains(kind) && record.similar.size() >= kMaxReasons) {
    record.similar.clear();
  }
  Similar& similar = record.similar[kind];
  if (now - similar.last > options_.similar_within) similar.messages.clear();
  similar.last = now;
  const size_t message = std::hash<std::string>()(event.message());
  if (similar.messages.contains(message)) return false;
  if (similar.messages.size() >= options_.similar) return true;
  similar.messages.insert(message);
  return false;
}

PodEvents::Known& PodEvents::KnownAs(const std::string& key, const PodEvent& event) {
  const auto found = known_.find(key);
  if (found != known_.end()) {
    used_.splice(used_.end(), used_, found->second.used);
    return found->second;
  }
  ForgetSome();
  Known& known = known_[key];
  known.used = used_.insert(used_.end(), key);
  known.object = {.event_namespace = IsOfNode(event) ? "default" : event.pod_namespace(),
                  .about = AboutOf(event, node_),
                  .source = "cri-resmgr",
                  .node = node_,
                  .warning = event.warning(),
                  .reason = event.reason(),
                  .count = 0,
                  .first = LastOf(event)};
  return known;
}

// Forgets the Events used least recently. Fewer Events may wait than may be known, so there is one
// to forget.
void PodEvents::ForgetSome() {
  for (auto at = used_.begin(); known_.size() >= options_.most_known && at != used_.end();) {
    const auto found = known_.find(*at);
    if (found->second.waiting || *at == under_way_) {
      ++at;
      continue;
    }
    known_.erase(found);
    at = used_.erase(at);
  }
}

void PodEvents::Plan() {
  if (timer_ != nullptr || delivery_.under_way() || waiting_.empty()) return;
  timer_ =
      timers_.After(jitter_.Between(options_.spread, 3 * options_.spread), [this] { SendNext(); });
}

void PodEvents::SendNext() {
  timer_.reset();
  const std::string key = waiting_.front();
  waiting_.pop_front();
  under_way_ = key;
  Known& known = known_.at(key);
  known.waiting = false;
  const bool update = known.exists;
  if (!update) {
    last_name_ = std::max(now_(), last_name_ + std::chrono::nanoseconds(1));
    known.object.name = EventName(TextAt(known.object.about, {"name"}), last_name_);
  }
  known.unwritten = 0;
  delivery_.Send(
      update ? known.object.Update() : known.object.Creation(),
      [this, key, update](const StatusOr<HttpReply>& reply) { Sent(key, update, reply); },
      Delivery::Refusal::kEnd);
}

void PodEvents::Sent(const std::string& key, bool updated, const StatusOr<HttpReply>& reply) {
  under_way_.clear();
  const Status status = StatusOfReply(reply);
  Known& known = known_.at(key);
  // If only the reply to a creation was lost, its repetition conflicts: the Event exists.
  known.exists = status.ok() || (updated && status.code() != StatusCode::kNotFound) ||
                 (!updated && status.code() == StatusCode::kAborted);
  if (status.ok()) {
    refusal_told_ = false;
    known.forbidden.Reset();
  }
  if (updated && !known.exists) {
    // The API server has dropped the Event, as it does after an hour: a new one begins.
    known.object.count = std::max<int64_t>(1, known.unwritten);
    known.object.first = known.object.last;
    if (!std::exchange(known.waiting, true)) waiting_.push_front(key);
  }
  if (reply.ok() && RefusesContent(*reply)) Refused(key, known, *reply);
  Plan();
}

void PodEvents::Refused(const std::string& key, Known& known, const HttpReply& reply) {
  if (IsOfEndingNamespace(reply)) return;
  if (reply.status == kNoRight) {
    if (const auto pause = known.forbidden.Next()) {
      known.again =
          timers_.After(jitter_.AtLeast(*pause), [this, key, &known] { Wait(key, known); });
      return;
    }
  }
  if (std::exchange(refusal_told_, true)) return;
  GetLogger("status").Warn(
      "a pod Event is dropped, and more may be: {}{}", Message(StatusOfReply(reply)),
      reply.status == kNoRight
          ? "; the agent needs the right to create and patch events in all namespaces, or "
            "-node-reports without pod-events"
          : "");
}

}  // namespace resmgr::agent
