// SPDX-License-Identifier: Apache-2.0
#include "agent/config_pusher.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

// A daemon that restarts is back before anybody needs to hear of it.
constexpr std::chrono::seconds kPatience{5};

// Whether asking again could give another answer.
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

ConfigPusher::ConfigPusher(ConfigClient& client, Timers& timers, Backoff::Options backoff,
                           uint64_t seed, Report report)
    : client_(client), timers_(timers), report_(std::move(report)), backoff_(backoff, seed) {
  client_.SetLostCallback([this] { Lost(); });
}

void ConfigPusher::Set(const std::optional<ConfigMap>& map) {
  const bool same = wanted_ && map && SameContent(*wanted_, *map);
  wanted_ = map;
  if (same) {
    // The verdict under way, or the last one, is about this content.
    if (verdict_.state != Verdict::State::kUnknown && verdict_.map == map->name) {
      Tell(verdict_.state, verdict_.reason);
    }
    return;
  }
  content_version_ = map ? map->version : "";
  backoff_.Reset();
  failing_since_.reset();
  timer_.reset();
  if (!wanted_) {
    settled_ = true;
    Tell(Verdict::State::kNone, "");
    return;
  }
  if (!wanted_->problem.empty()) {
    settled_ = true;
    Reject(wanted_->problem);
    return;
  }
  settled_ = false;
  Push();
}

void ConfigPusher::Push() {
  if (pushing_ || settled_ || !wanted_) return;  // the end of the push under way looks again
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
  failing_since_.reset();
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
  const auto now = timers_.Now();
  if (!failing_since_) {
    GetLogger("config").Warn("cri-resmgr does not take the configuration: {}; trying again",
                             Message(why));
    failing_since_ = now;
  }
  if (now - *failing_since_ >= kPatience) {
    Tell(Verdict::State::kPending, std::string(Message(why)));
  }
  timer_ = timers_.After(backoff_.Next(), [this] { Push(); });
}

void ConfigPusher::Lost() {
  if (!wanted_ || !settled_ || !wanted_->problem.empty()) return;
  GetLogger("config").Info(
      "the connection to cri-resmgr is lost: delivering the configuration again");
  settled_ = false;
  Push();
}

void ConfigPusher::Tell(Verdict::State state, std::string reason) {
  Verdict verdict{.state = state, .reason = std::move(reason)};
  if (wanted_) {
    verdict.content_version = content_version_;
    verdict.map = wanted_->name;
    verdict.version = wanted_->version;
  }
  if (verdict == verdict_) return;
  verdict_ = std::move(verdict);
  report_(verdict_);
}

}  // namespace resmgr::agent
