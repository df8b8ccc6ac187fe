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
// place, since it may have started without. A verdict is final until the configuration or the
// daemon changes; without a verdict it tries again until it gets one. The configuration is pending
// while the daemon is away, or silent, for longer than five seconds. Thread-compatible.
class ConfigPusher {
 public:
  // Called at each change of the verdict.
  using Report = std::function<void(const Verdict& verdict)>;

  ConfigPusher(ConfigClient& client, Clock& timers, Backoff::Options backoff, uint64_t seed,
               Report report);

  // Sets the map to deliver; nullopt delivers nothing, and the daemon keeps its configuration.
  void Set(const std::optional<ConfigMap>& map);

  const Verdict& verdict() const { return verdict_; }
  // The map that was sent and is not answered yet.
  const std::optional<ConfigMap>& pushing() const { return pushing_; }

 private:
  // The time from when an answer is due until it comes.
  struct Wait {
    std::string why{};  // empty: no reason is known yet
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
  // Begins to wait, unless it waits already. `since` is the time that has passed.
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
