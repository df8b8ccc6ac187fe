// SPDX-License-Identifier: Apache-2.0
#include "agent/config_pusher.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

// A daemon that is away for less than this time, as at a restart, is not reported.
constexpr std::chrono::milliseconds kPatience{5000};
constexpr char kSilent[] = "cri-resmgr does not answer";

// Whether the same request could get another answer later.
bool IsTransient(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
    case StatusCode::kAborted:
    case StatusCode::kUnknown:
    case StatusCode::kInternal:
    case StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

}  // namespace

ConfigPusher::ConfigPusher(ConfigClient& client, Clock& timers, Backoff::Options backoff,
                           uint64_t seed, Report report)
    : client_(client), timers_(timers), report_(std::move(report)), backoff_(backoff, seed) {
  client_.SetCallbacks({.lost = [this] { Lost(); },
                        .silent = [this](std::chrono::milliseconds since) { Silent(since); },
                        .answers = [this] { Answers(); }});
}

void ConfigPusher::Set(const std::optional<ConfigMap>& map) {
  const bool same = wanted_ && map && SameContent(*wanted_, *map);
  wanted_ = map;
  if (same) {
    // The content is the same, so the known verdict, or the one that is awaited, holds for this
    // version, too.
    if (verdict_.state != Verdict::State::kUnknown && verdict_.map == map->name) {
      Tell(verdict_.state, verdict_.reason);
    }
    return;
  }
  // A daemon that hung meanwhile must not carry out a configuration that applies no more.
  if (pushing_ && client_.TakeBack()) pushing_.reset();
  content_version_ = map ? map->version : "";
  backoff_.Reset();
  wait_.reset();
  retry_.reset();
  settled_ = !Delivers();
  if (!wanted_) {
    Tell(Verdict::State::kNone, "");
  } else if (settled_) {
    Reject(wanted_->problem);
  } else {
    Await({});
    Push();
  }
}

void ConfigPusher::Push() {
  if (pushing_ || settled_ || !wanted_) return;  // Pushed() calls this again
  pushing_ = wanted_;
  client_.SetConfig(pushing_->data,
                    [this](const StatusOr<std::string>& verdict) { Pushed(verdict); });
}

void ConfigPusher::Pushed(const StatusOr<std::string>& verdict) {
  const bool current = wanted_ && SameContent(*pushing_, *wanted_);
  pushing_.reset();
  if (!current) return Push();
  if (!verdict.ok() && IsTransient(verdict.status())) return Retry(verdict.status());
  settled_ = true;
  backoff_.Reset();
  wait_.reset();
  const std::string reason = verdict.ok() ? *verdict : Describe(verdict.status());
  if (reason.empty()) {
    GetLogger("config").Info("cri-resmgr accepts ConfigMap {}", wanted_->name);
    Tell(Verdict::State::kAccepted, "");
  } else {
    Reject(reason);
  }
}

void ConfigPusher::Reject(const std::string& reason) {
  constexpr size_t kLogged = 1024;
  GetLogger("config").Error("ConfigMap {} is rejected: {}", wanted_->name,
                            Printable(reason, kLogged));
  Tell(Verdict::State::kRejected, reason);
}

void ConfigPusher::Retry(const Status& why) {
  if (!std::exchange(wait_->failed, true)) {
    GetLogger("config").Warn("cri-resmgr does not take the configuration: {}; trying again",
                             Message(why));
  }
  wait_->why = Message(why);
  if (wait_->told) TellPending();
  retry_ = timers_.After(backoff_.Next(), [this] { Push(); });
}

void ConfigPusher::Lost() {
  if (!settled_ || !Delivers()) return;
  GetLogger("config").Info(
      "the connection to cri-resmgr is lost: delivering the configuration again");
  settled_ = false;
  Await({});
  Push();
}

void ConfigPusher::Silent(std::chrono::milliseconds since) {
  if (!settled_ || !Delivers()) return;
  GetLogger("config").Warn("{}", kSilent);
  Await(since);
}

void ConfigPusher::Answers() {
  if (!settled_ || !wait_) return;
  GetLogger("config").Info("cri-resmgr answers again");
  wait_.reset();
  Tell(answer_.state, answer_.reason);
}

void ConfigPusher::Await(std::chrono::milliseconds since) {
  if (wait_) return;
  wait_ = Wait();
  wait_->why = kSilent;
  wait_->patience =
      timers_.After(std::max(kPatience - since, decltype(since)(0)), [this] { TellPending(); });
}

void ConfigPusher::TellPending() {
  wait_->told = true;
  Tell(Verdict::State::kPending, wait_->why);
}

void ConfigPusher::Tell(Verdict::State state, std::string reason) {
  Verdict verdict{.state = state, .reason = std::move(reason)};
  if (wanted_) {
    verdict.content_version = content_version_;
    verdict.map = wanted_->name;
    verdict.version = wanted_->version;
  }
  if (state != Verdict::State::kPending) answer_ = verdict;
  if (verdict == verdict_) return;
  verdict_ = std::move(verdict);
  report_(verdict_);
}

}  // namespace resmgr::agent
