// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/pacing.h"
#include "agent/selection.h"
#include "pkg/base/status.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// The daemon of this node as a receiver of configuration. Callbacks come on the loop's thread,
// never from within a call, and none after the end of the object.
class ConfigClient {
 public:
  // The verdict: "" if the daemon has accepted, else its reason. An error: the daemon was not
  // reached, or gave no verdict.
  using Done = std::function<void(StatusOr<std::string> verdict)>;
  // Events of the daemon that gave the last verdict. All callbacks are set.
  struct Callbacks {
    // The daemon is gone; the next one may have no configuration.
    std::function<void()> lost{};
    // The daemon is connected but has not answered for this long.
    std::function<void(std::chrono::milliseconds since)> silent{};
    // The daemon was silent and answers again; it is the same process.
    std::function<void()> answers{};
  };

  virtual ~ConfigClient() = default;
  virtual void SetCallbacks(Callbacks callbacks) = 0;
  // Sends the configuration. At most one call at a time.
  virtual void SetConfig(const std::map<std::string, std::string>& config, Done done) = 0;
  // Takes back a configuration that waits for the daemon, so that it is not sent and has no
  // verdict. False if there is none.
  virtual bool TakeBack() = 0;
};

// Delivers the applying configuration to the daemon, and again to each new daemon, which may have
// started without it. A verdict is final until the configuration or the daemon changes; until there
// is one, the delivery is repeated. The configuration is reported as pending while the daemon is
// away, or silent, for longer than five seconds. Thread-compatible.
class ConfigPusher {
 public:
  // Called at each change of the verdict.
  using Report = std::function<void(const Verdict& verdict)>;

  ConfigPusher(ConfigClient& client, Clock& timers, Backoff::Options backoff, uint64_t seed,
               Report report);

  // Sets the map to deliver; nullopt delivers nothing, and the daemon keeps its configuration.
  void Set(const std::optional<ConfigMap>& map);

  const Verdict& verdict() const { return verdict_; }
  // The map that was sent and has no answer yet.
  const std::optional<ConfigMap>& pushing() const { return pushing_; }

 private:
  // The state while an answer of the daemon is awaited.
  struct Wait {
    std::string why{};  // empty: no reason is known yet
    bool failed = false;
    bool told = false;  // kPending was reported
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
  std::string content_version_;       // the version of `wanted_` that brought its content
  std::optional<ConfigMap> pushing_;  // under way
  bool settled_ = true;               // the daemon has given its verdict on `wanted_`
  std::optional<Wait> wait_;
  EventLoop::HandlePtr retry_;
  Verdict verdict_;
  Verdict answer_;  // the last verdict that was not kPending
};

}  // namespace resmgr::agent
