// SPDX-License-Identifier: Apache-2.0
#include "agent/status_reporter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/base/utf8.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

// Bytes; all annotations of an object together may have 256 KiB.
constexpr size_t kMaxError = 8192;

// Limit in bytes, keys included, of the annotations that are taken along beside the report itself.
constexpr size_t kMaxTakenAlong = (size_t{256} << 10) - 2 * kMaxError;
constexpr std::chrono::seconds kRefusalLogPeriod{60};
constexpr size_t kMaxKeys = 512;  // bytes of keys in a log line

size_t SizeOf(const Json& annotations) {
  size_t size = 0;
  for (const auto& [key, value] : annotations.items()) {
    size += key.size();
    if (value.is_string()) size += value.get_ref<const std::string&>().size();
  }
  return size;
}

std::string KeysOf(const Json& annotations) {
  std::string keys;
  for (const auto& [key, value] : annotations.items()) {
    if (!keys.empty()) keys += ", ";
    keys += Printable(key);
  }
  return keys;
}

// Indices of kStatusAnnotations.
enum Text : size_t { kStatus, kMap, kVersion, kError };

// The text as the API server returns it.
std::string AsStored(const std::string& text) {
  const std::optional<Json> stored = ParseJson(JsonText(text));
  return stored ? stored->get<std::string>() : "";
}

std::string DescribeLosses(const std::string& losses) {
  return fmt::format("containers lost exclusive CPUs: {}", losses);
}

}  // namespace

StatusReporter::StatusReporter(HttpTransport& transport, Clock& timers, std::string node,
                               std::string own_map, const ReportOptions& options, uint64_t seed,
                               const EventSeries::WallClock& now)
    : node_(std::move(node)),
      own_map_(std::move(own_map)),
      options_(options),
      timers_(timers),
      jitter_(seed),
      limit_(options.limit),
      refusals_(1, kRefusalLogPeriod),
      annotations_(transport, timers, "annotating the node", options.backoff, seed + 1, 0),
      rejected_(transport, timers, node_, "ConfigRejected", options.backoff, seed + 2, now),
      lost_(transport, timers, node_, "ExclusiveCpusLost", options.backoff, seed + 3, now) {}

StatusReporter::Texts StatusReporter::TextsOf(const Verdict& verdict, const std::string& losses) {
  Texts texts;
  texts[kStatus] = ToString(verdict.state);
  texts[kMap] = verdict.map;
  texts[kVersion] = verdict.version;
  const bool at_a_price = verdict.state == Verdict::State::kAccepted && !losses.empty();
  texts[kError] =
      AsStored(Utf8Cut(at_a_price ? DescribeLosses(losses) : verdict.reason, kMaxError));
  return texts;
}

void StatusReporter::Report(const Verdict& verdict) {
  verdict_ = verdict;
  wanted_ = TextsOf(verdict, losses_);
  if (verdict.state == Verdict::State::kRejected) ++rejections_;
  Plan();
}

void StatusReporter::NodeSeen(const Json& node) {
  seen_ = true;
  uid_ = TextAt(node, {"metadata", "uid"});
  for (size_t i = 0; i < shown_.size(); ++i) {
    shown_[i] = TextAt(node, {"metadata", "annotations", kStatusAnnotations[i]});
  }
  losses_ = TextAt(node, {"metadata", "annotations", kPolicyLossesAnnotation});
  if (!told_losses_ || losses_.empty()) told_losses_ = losses_;
  wanted_ = TextsOf(verdict_, losses_);
  Plan();
}

// Whether other nodes have the same news at the same time: a new ConfigMap, or a new version of it.
// False if the new or the reported ConfigMap is for this node alone.
bool StatusReporter::IsSharedNews() const {
  if (shown_[kStatus].empty()) return false;  // a new node
  if (wanted_[kMap] == shown_[kMap] && wanted_[kVersion] == shown_[kVersion]) return false;
  return wanted_[kMap] != own_map_ && shown_[kMap] != own_map_;
}

bool StatusReporter::TakeAlong(const Json& annotations) {
  Json others = others_;
  others.update(annotations);
  if (SizeOf(others) > kMaxTakenAlong) return false;
  others_ = std::move(others);
  Plan();
  return true;
}

bool StatusReporter::LeaveOut(const Json& annotations) {
  bool under_way = false;
  for (const auto& [key, value] : annotations.items()) {
    others_.erase(key);
    under_way = under_way || others_sent_.contains(key);
  }
  // The patch that is being retried must be replaced by one without these annotations.
  if (under_way) Write();
  return std::ranges::none_of(annotations.items(), [this](const auto& entry) {
    return others_before_.contains(entry.key());
  });
}

void StatusReporter::Plan() {
  const bool known = verdict_.state != Verdict::State::kUnknown;
  const bool news = known && wanted_ != sent_.value_or(shown_);
  if (!news && (withheld_ || others_ == others_sent_)) {
    timer_.reset();
    return;
  }
  const auto now = timers_.Steady();
  // A rejection, or news of losses, makes two requests (the patch and an Event), so it gets twice
  // the spread.
  const bool event = verdict_.state == Verdict::State::kRejected || told_losses_ != losses_;
  const int requests = event ? 2 : 1;
  const bool spread = !news || IsSharedNews();
  // The first random time stays: the earlier of two would not be evenly distributed.
  if (timer_ && spread && spread_) return;
  const auto delay = spread ? jitter_.UpTo(requests * options_.spread) : options_.debounce;
  const auto due = now + std::max({delay, options_.debounce, limit_.Wait(now)});
  // A planned report sends the state that is current by then, so later news do not delay it.
  if (timer_ && due_ <= due) return;
  due_ = due;
  spread_ = spread;
  timer_ =
      timers_.After(std::chrono::ceil<std::chrono::milliseconds>(due - now), [this] { Fire(); });
}

void StatusReporter::Fire() {
  timer_.reset();
  limit_.Take(timers_.Steady());
  WriteEvents();
  Write();
}

void StatusReporter::Write() {
  const Json others = withheld_ ? Json::object() : others_;
  Json annotations = others;
  const bool known = verdict_.state != Verdict::State::kUnknown;
  for (size_t i = 0; known && i < wanted_.size(); ++i) {
    annotations[std::string(kStatusAnnotations[i])] =
        wanted_[i].empty() ? Json(nullptr) : Json(wanted_[i]);
  }
  HttpRequest request =
      RequestWith("PATCH", "/api/v1/nodes/" + PercentEncoded(node_),
                  {{"metadata", {{"annotations", std::move(annotations)}}}}, kMergePatch);
  request.accept = MetadataOnly("PartialObjectMetadata");
  sent_ = known ? wanted_ : shown_;
  seen_ = false;
  sent_uid_ = uid_;
  if (annotations_.awaits_reply()) others_before_.update(others_sent_);
  others_sent_ = others;
  if (!others.empty()) others_written_(others);
  annotations_.Send(
      std::move(request), [this](const StatusOr<HttpReply>& reply) { Written(reply); },
      others.empty() ? Delivery::Refusal::kTryAgain : Delivery::Refusal::kEnd);
}

void StatusReporter::Written(const StatusOr<HttpReply>& reply) {
  const Texts sent = *std::exchange(sent_, std::nullopt);
  const Json others = std::exchange(others_sent_, Json::object());
  others_before_ = Json::object();
  const bool refused = reply.ok() && RefusesContent(*reply);
  const bool known = verdict_.state != Verdict::State::kUnknown;
  // The node's object was made anew meanwhile: only the watch can show its annotations.
  if (!refused && sent_uid_ != uid_) return Plan();
  if (refused && Withhold(StatusOfReply(*reply)))
    return known && wanted_ != shown_ ? Write() : Plan();
  if (!others.empty()) withheld_for_.Reset();
  for (const auto& [key, value] : others.items()) {
    const auto waiting = others_.find(key);
    if (waiting != others_.end() && *waiting == value) others_.erase(waiting);
  }
  if (!refused) {
    // If the watch has shown the node meanwhile, that state may be newer than the patch. If it is
    // older, the watch will show the patch.
    if (!seen_) shown_ = sent;
    return Plan();
  }
  if (refusals_.Pass(timers_.Steady())) {
    GetLogger("status").Warn("annotations for the node are dropped ({}): {}",
                             Utf8Cut(KeysOf(others), kMaxKeys), Message(StatusOfReply(*reply)));
  }
  if (known || !others_.empty()) return Write();
  Plan();
}

// Keeps annotations that are forbidden for another try; false: they are to be dropped.
bool StatusReporter::Withhold(const Status& refusal) {
  if (refusal.code() != StatusCode::kPermissionDenied) return false;
  const auto pause = withheld_for_.Next();
  if (!pause) return false;
  withheld_ = timers_.After(jitter_.AtLeast(*pause), [this] {
    withheld_.reset();
    if (!others_.empty()) Fire();
  });
  return true;
}

// If the node shows this rejection already, as after a restart of the agent, it is not new, even if
// the map has another version: a change of its metadata is enough for that.
void StatusReporter::TellRejection() {
  const int times = std::exchange(rejections_, 0);
  if (verdict_.state != Verdict::State::kRejected || times == 0) return;
  if (shown_[kStatus] == wanted_[kStatus] && shown_[kMap] == wanted_[kMap] &&
      shown_[kError] == wanted_[kError]) {
    return;
  }
  rejected_.Add(fmt::format("cri-resmgr keeps its configuration: {}", Complaint(verdict_)), times);
}

void StatusReporter::TellLosses() {
  if (verdict_.state != Verdict::State::kAccepted || told_losses_ == losses_) return;
  told_losses_ = losses_;
  lost_.Add(
      fmt::format("by the configuration of ConfigMap {} {}", verdict_.map, DescribeLosses(losses_)),
      1);
}

void StatusReporter::WriteEvents() {
  TellRejection();
  TellLosses();
}

}  // namespace resmgr::agent
