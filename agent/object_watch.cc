// SPDX-License-Identifier: Apache-2.0
#include "agent/object_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

constexpr int kGone = 410;
// After so many tries without success the last version is not trusted any more.
constexpr int kTriesBeforeList = 3;
// A watch that lived so long was a good one.
constexpr std::chrono::seconds kGoodWatch{5};
// For a server that does not end its watches itself.
constexpr std::chrono::seconds kGrace{30};
constexpr std::chrono::seconds kLogPeriod{60};

}  // namespace

ObjectWatch::ObjectWatch(HttpTransport& transport, Timers& timers, Target target,
                         const RetryOptions& options, Changed changed)
    : transport_(transport),
      timers_(timers),
      target_(std::move(target)),
      options_(options),
      changed_(std::move(changed)),
      backoff_(options.backoff, options.seed),
      random_(options.seed),
      log_limit_(1, kLogPeriod) {}

std::string ObjectWatch::Selector() const {
  return target_.collection + "?fieldSelector=" + UrlEncode("metadata.name=" + target_.name);
}

bool ObjectWatch::IsTarget(const Json& object) const {
  return TextAt(object, {"metadata", "name"}) == target_.name;
}

void ObjectWatch::List() {
  HttpRequest request;
  request.target = Selector();
  call_ = transport_.Send(std::move(request), nullptr,
                          [this](const StatusOr<HttpReply>& reply) { Listed(reply); });
}

void ObjectWatch::Listed(const StatusOr<HttpReply>& reply) {
  call_.reset();
  const Status status = reply.ok() ? ReadList(*reply) : reply.status();
  if (status.ok()) return Watch();
  Wait(status, reply.ok() ? WaitAskedFor(*reply) : std::chrono::seconds(0));
}

Status ObjectWatch::ReadList(const HttpReply& reply) {
  RESMGR_RETURN_IF_ERROR(StatusOfReply(reply));
  const std::optional<Json> list = ParseJson(reply.body);
  const Json* items = list ? Find(*list, {"items"}) : nullptr;
  std::string version = list ? TextAt(*list, {"metadata", "resourceVersion"}) : "";
  // An empty list of Go is null.
  if (items == nullptr || !(items->is_array() || items->is_null()) || version.empty()) {
    return Unavailable("the API server's list is not one");
  }
  version_ = std::move(version);
  const auto found = std::find_if(items->begin(), items->end(),
                                  [this](const Json& item) { return IsTarget(item); });
  changed_(found == items->end() ? nullptr : &*found);
  return OkStatus();
}

void ObjectWatch::Watch() {
  const auto shortest = options_.watch_timeout.count();
  std::uniform_int_distribution<std::chrono::seconds::rep> lifetime(shortest, 2 * shortest);
  const std::chrono::seconds timeout{lifetime(random_)};
  HttpRequest request;
  request.target =
      fmt::format("{}&watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                  Selector(), UrlEncode(version_), timeout.count());
  request.timeout = timeout + kGrace;
  decoder_ = WatchDecoder();
  watch_began_ = timers_.Now();
  call_ = transport_.Send(
      std::move(request), [this](std::string_view piece) { Data(piece); },
      [this](const StatusOr<HttpReply>& reply) { Ended(reply); });
}

void ObjectWatch::Data(std::string_view piece) {
  const Status status =
      decoder_.Feed(piece, [this](const WatchEvent& event) { return Event(event); });
  if (status.ok()) return;
  call_.reset();
  Wait(status, {});
}

bool ObjectWatch::Event(const WatchEvent& event) {
  if (event.type == WatchEvent::Type::kError) {
    call_.reset();
    const int code = IntAt(event.object, {"code"});
    if (code == kGone) version_.clear();
    Wait(Unavailable("the watch ends with {}: {}", code,
                     Printable(TextAt(event.object, {"message"}))),
         {});
    return false;
  }
  const std::string version = TextAt(event.object, {"metadata", "resourceVersion"});
  if (!version.empty()) version_ = version;
  backoff_.Reset();
  if (event.type == WatchEvent::Type::kBookmark || !IsTarget(event.object)) return true;
  changed_(event.type == WatchEvent::Type::kDeleted ? nullptr : &event.object);
  return true;
}

void ObjectWatch::Ended(const StatusOr<HttpReply>& reply) {
  call_.reset();
  if (timers_.Now() - watch_began_ >= kGoodWatch) backoff_.Reset();
  if (!reply.ok()) return Wait(reply.status(), {});
  if (reply->status == kGone) version_.clear();
  const Status status = StatusOfReply(*reply);
  // That a watch ends is nothing unusual.
  Wait(status, WaitAskedFor(*reply));
}

void ObjectWatch::Wait(const Status& why, std::chrono::milliseconds at_least) {
  const std::chrono::milliseconds wait = std::max(backoff_.Next(), at_least);
  if (backoff_.failures() >= kTriesBeforeList) version_.clear();
  GetLogger("watch").Debug("{}: next try in {} ms", target_.name, wait.count());
  if (!why.ok()) {
    const auto more = log_limit_.Pass(timers_.Now());
    // Another kind of trouble is news, as of a token that is refused once the server is back.
    if (more || why.code() != logged_) {
      logged_ = why.code();
      GetLogger("watch").Warn(
          "following {}/{}: {}; trying again ({} more like this were not logged)",
          target_.collection, target_.name, Message(why), more.value_or(0));
    }
  }
  timer_ = timers_.After(wait, [this] {
    if (version_.empty()) {
      List();
    } else {
      Watch();
    }
  });
}

}  // namespace resmgr::agent
