// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/backoff.h"
#include "agent/config_client.h"
#include "agent/selection.h"
#include "agent/verdict.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// Brings the configuration that applies to the daemon, and again to each daemon that takes its
// place: it may have come up without. A verdict is final until the configuration or the daemon
// changes; where none can be had, it tries until it gets one. While the daemon is away, or silent,
// for longer than five seconds the configuration is pending. Thread-compatible.
class ConfigPusher {
 public:
  // Each change of the verdict.
  using Report = std::function<void(const Verdict& verdict)>;

  ConfigPusher(ConfigClient& client, Clock& timers, Backoff::Options backoff, uint64_t seed,
               Report report);

  // What is to run from now on; nothing: nothing is delivered, and the daemon keeps what it has.
  void Set(const std::optional<ConfigMap>& map);

  const Verdict& verdict() const { return verdict_; }
  // What the daemon was sent and has not answered yet.
  const std::optional<ConfigMap>& pushing() const { return pushing_; }

 private:
  // From when an answer is due until it comes.
  struct Wait {
    std::string why{};  // there is none yet
    bool failed = false;
    bool told = false;  // that the configuration is pending
    EventLoop::HandlePtr patience{};
  };

  bool Delivers() const { return wanted_ && wanted_->problem.empty(); }
  void Push();
  void Pushed(const StatusOr<std::string>& verdict);
  void Reject(const std::string& reason);
  void Retry(const Status& why);
  void Lost();
  void Silent(std::chrono::milliseconds since);
  void Answers();
  // Begins to wait, unless it waits already. `since` has passed.
  void Await(std::chrono::milliseconds since);
  void TellPending();
  void Tell(Verdict::State state, std::string reason);

  ConfigClient& client_;
  Clock& timers_;
  const Report report_;
  Backoff backoff_;
  std::optional<ConfigMap> wanted_;
  std::string content_version_;       // the first version of `wanted_` with this content
  std::optional<ConfigMap> pushing_;  // under way
  bool settled_ = true;               // the daemon has given its verdict on `wanted_`
  std::optional<Wait> wait_;
  EventLoop::HandlePtr retry_;
  Verdict verdict_;
  Verdict answer_;  // the last one that was not kPending
};

}  // namespace resmgr::agent
