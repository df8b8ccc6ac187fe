// SPDX-License-Identifier: Apache-2.0
#include "agent/object_watch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/log/log.h"
#include "pkg/log/not_logged.h"

namespace resmgr::agent {
namespace {

constexpr int kNotAcceptable = 406;
constexpr int kVersionGone = 410;
constexpr int kTooManyAtOnce = 429;
constexpr int kServiceUnavailable = 503;
// After this many refusals the last version is not trusted any more: the server may have lost its
// data, so that this version lies in its future.
constexpr int kRefusalsBeforeList = 3;
// A watch that lived this long was a success.
constexpr std::chrono::seconds kGoodWatch{5};
// Extra time before a watch that the server does not end is given up.
constexpr std::chrono::seconds kGrace{30};
constexpr std::chrono::seconds kTroubleLogPeriod{60};

// The server runs but cannot serve now; the request is not the cause.
bool IsOverloaded(int code) {
  return code == kTooManyAtOnce || code == kServiceUnavailable;
}

using Type = WatchEvent::Type;

constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes = {{
    {"ADDED", Type::kAdded},
    {"MODIFIED", Type::kModified},
    {"DELETED", Type::kDeleted},
    {"BOOKMARK", Type::kBookmark},
    {"ERROR", Type::kError},
}};

// nullopt for an event of an unknown type.
StatusOr<std::optional<WatchEvent>> Decode(std::string_view line) {
  std::optional<Json> json = ParseJson(line);
  // The message does not quote the line: a proxy may have sent a Secret to the wrong client.
  if (!json || !json->is_object()) return InvalidArgument("a line of the watch is not JSON");
  const std::string type = TextAt(*json, {"type"});
  const Json* object = Find(*json, {"object"});
  if (type.empty() || object == nullptr || !object->is_object()) {
    return InvalidArgument("a line of the watch has no type or no object");
  }
  for (const auto& [name, value] : kTypes) {
    if (type == name) return WatchEvent{.type = value, .object = std::move((*json)["object"])};
  }
  return std::nullopt;
}

}  // namespace

ObjectWatch::ObjectWatch(HttpTransport& transport, Clock& timers, RetryGate& gate, Target target,
                         const RetryOptions& options, Changed changed)
    : transport_(transport),
      timers_(timers),
      gate_(gate),
      target_(std::move(target)),
      options_(options),
      changed_(std::move(changed)),
      backoff_(options.backoff, options.seed),
      jitter_(options.seed + 1),
      log_limit_(1, kTroubleLogPeriod) {}

void ObjectWatch::Start() {
  if (options_.start_spread.count() == 0) return List();
  timer_ = timers_.After(jitter_.UpTo(options_.start_spread), [this] { Ask(); });
}

std::string ObjectWatch::Selector() const {
  return target_.collection + "?fieldSelector=" + PercentEncoded("metadata.name=" + target_.name);
}

std::string ObjectWatch::Accepted(std::string_view kind) const {
  return target_.metadata_only ? MetadataOnly(kind) : std::string(kJsonType);
}

bool ObjectWatch::IsTarget(const Json& object) const {
  return TextAt(object, {"metadata", "name"}) == target_.name;
}

void ObjectWatch::List() {
  HttpRequest request;
  request.target = fmt::format("{}&resourceVersion={}", Selector(),
                               version_.empty() ? "0" : PercentEncoded(version_));
  request.accept = Accepted("PartialObjectMetadataList");
  call_ = transport_.Send(std::move(request), nullptr,
                          [this](const StatusOr<HttpReply>& reply) { Listed(reply); });
}

void ObjectWatch::Listed(const StatusOr<HttpReply>& reply) {
  call_.reset();
  if (!reply.ok()) return Retry(reply.status(), gate_.Failed(timers_.Steady()));
  const Status status = ReadList(*reply);
  if (status.ok()) {
    gate_.Succeeded();
    return Watch();
  }
  Retry(status, Refused(reply->status), WaitAskedFor(*reply));
}

Status ObjectWatch::ReadList(const HttpReply& reply) {
  RESMGR_RETURN_IF_ERROR(StatusOfReply(reply));
  const std::optional<Json> list = ParseJson(reply.body);
  const Json* items = list ? Find(*list, {"items"}) : nullptr;
  std::string version = list ? TextAt(*list, {"metadata", "resourceVersion"}) : "";
  // Go encodes an empty list as null.
  if (items == nullptr || !(items->is_array() || items->is_null()) || version.empty()) {
    return Unavailable("the API server's list is malformed");
  }
  version_ = std::move(version);
  gone_ = false;
  Succeeded();
  const auto found = std::find_if(items->begin(), items->end(),
                                  [this](const Json& item) { return IsTarget(item); });
  changed_(found == items->end() ? nullptr : &*found);
  return OkStatus();
}

void ObjectWatch::Watch() {
  const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(
      jitter_.Between(options_.watch_timeout, 2 * options_.watch_timeout));
  HttpRequest request;
  request.target =
      fmt::format("{}&watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                  Selector(), PercentEncoded(version_), timeout.count());
  request.accept = Accepted("PartialObjectMetadata");
  request.timeout = timeout + kGrace;
  decoder_ = WatchDecoder();
  watch_began_ = timers_.Steady();
  call_ = transport_.Send(
      std::move(request), [this](std::string_view piece) { Data(piece); },
      [this](const StatusOr<HttpReply>& reply) { Ended(reply); });
}

void ObjectWatch::Data(std::string_view piece) {
  const Status status =
      decoder_.Feed(piece, [this](const WatchEvent& event) { return Event(event); });
  if (status.ok()) return;
  call_.reset();
  Retry(status, backoff_.Next());
}

bool ObjectWatch::Event(const WatchEvent& event) {
  if (event.type == WatchEvent::Type::kError) {
    call_.reset();
    const int code = IntAt(event.object, {"code"});
    Retry(Unavailable("the watch ends with {}: {}", code,
                      Printable(TextAt(event.object, {"message"}))),
          Refused(code));
    return false;
  }
  const std::string version = TextAt(event.object, {"metadata", "resourceVersion"});
  if (!version.empty()) version_ = version;
  backoff_.Reset();
  gate_.Succeeded();
  Succeeded();
  if (event.type == WatchEvent::Type::kBookmark || !IsTarget(event.object)) return true;
  changed_(event.type == WatchEvent::Type::kDeleted ? nullptr : &event.object);
  return true;
}

void ObjectWatch::Ended(const StatusOr<HttpReply>& reply) {
  call_.reset();
  if (timers_.Steady() - watch_began_ >= kGoodWatch) {
    backoff_.Reset();
    gate_.Succeeded();
    Succeeded();
  }
  if (!reply.ok()) return Retry(reply.status(), gate_.Failed(timers_.Steady()));
  const Status status = StatusOfReply(*reply);
  // The end of a watch is normal.
  Retry(status, status.ok() ? backoff_.Next() : Refused(reply->status), WaitAskedFor(*reply));
}

std::chrono::milliseconds ObjectWatch::Refused(int code) {
  if (IsOverloaded(code)) return gate_.Failed(timers_.Steady());
  if (code == kNotAcceptable) target_.metadata_only = false;
  if (code == kVersionGone) gone_ = true;
  if (++refusals_ >= kRefusalsBeforeList) version_.clear();
  return backoff_.Next();
}

void ObjectWatch::Succeeded() {
  refusals_ = 0;
  trouble_ = OkStatus();
}

void ObjectWatch::LogTrouble(const Status& why) {
  const auto more = log_limit_.Pass(timers_.Steady());
  // Errors of another kind are logged at once, such as a refused token once the server is back.
  if (!more && why.code() == logged_) return;
  logged_ = why.code();
  GetLogger("watch").Warn("following {}/{}: {}; trying again{}", target_.collection, target_.name,
                          Message(why), NotLogged(more.value_or(0)));
}

void ObjectWatch::Retry(const Status& why, std::chrono::milliseconds wait,
                        std::chrono::milliseconds at_least) {
  if (!why.ok()) {
    trouble_ = why;
    LogTrouble(why);
  }
  wait += at_least;
  GetLogger("watch").Debug("{}: next try in {} ms", target_.name, wait.count());
  timer_ = timers_.After(wait, [this] { Ask(); });
}

void ObjectWatch::Ask() {
  if (const auto wait = gate_.Postponed(timers_.Steady()); wait.count() > 0) {
    timer_ = timers_.After(wait, [this] { Ask(); });
    return;
  }
  if (gone_ || version_.empty()) {
    List();
  } else {
    Watch();
  }
}

Status WatchDecoder::Feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > max_line_) {
      line_ = std::string();
      return InvalidArgument("a line of the watch has more than {} bytes", max_line_);
    }
    line_ += piece;
    if (end == std::string_view::npos) return OkStatus();
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (Trim(line).empty()) continue;
    RESMGR_ASSIGN_OR_RETURN(std::optional<WatchEvent> event, Decode(line));
    if (event && !sink(*std::move(event))) return OkStatus();
  }
  return OkStatus();
}

}  // namespace resmgr::agent
