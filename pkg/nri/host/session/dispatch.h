// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/nri/host/session/plugin_port.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// A plugin as its callers hold it: valid even if the plugin is lost meanwhile.
struct HostedPlugin {
  std::string name;                // index and name
  PluginPort* port = nullptr;      // null once the plugin is lost
  PluginSettings last_settings{};  // the settings when it was lost
  bool unvalidated = false;        // the plugin has left a request for validation unanswered

  // The settings in force, which may change while it is connected.
  PluginSettings settings() const;
  // `tolerant`: whether the request's pod may run without required plugins.
  FailurePolicy FailureOf(bool tolerant) const;
};
using HostedPlugins = std::vector<std::shared_ptr<HostedPlugin>>;

// The time for which one call may wait for all plugins together, in its phases before and after the
// runtime's part. Only time in which plugins are asked counts. Copies share the budget. Loop's
// thread only.
class Budget {
 public:
  explicit Budget(std::chrono::milliseconds whole)
      : state_(std::make_shared<State>(State{.left = whole})) {}

  // The remaining time for one of the plugins; 0: none.
  std::chrono::milliseconds For(const PluginSettings& settings) const;

  // The budget decreases while a Spending is held.
  using Spending = std::shared_ptr<void>;
  Spending Spend() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    Clock::duration left;
    int spending = 0;
    Clock::time_point since{};
  };

  static Clock::duration Left(const State& state);

  std::shared_ptr<State> state_;
};

// The connected plugins, in the order in which NRI asks them: ascending by index and name. Asks
// several of them about one event, and applies their settings to those that do not answer. Loop's
// thread only.
class Dispatcher {
 public:
  // The result of asking one plugin. OK: it agrees. kDeadlineExceeded or kUnavailable: no answer,
  // and FailurePolicy decides. Any other status refuses.
  using Answered = std::function<void(const Status&)>;
  // Asks one plugin, whose port is not null; answers once, at once or later.
  using Ask = std::function<void(HostedPlugin& plugin, std::chrono::milliseconds, Answered)>;
  using Done = std::function<void(const Status&)>;
  // kRequest: a refusal ends the event. kTolerant: as kRequest, but a required plugin without an
  // answer counts as any other, because the pod may run without required plugins. kNotice: a
  // refusal is only logged, and the next plugins still get the event.
  enum class Kind { kRequest, kTolerant, kNotice };

  // `ignored` is called when an event goes on although a plugin did not answer. May be empty.
  explicit Dispatcher(std::function<void()> ignored = {});

  void Add(PluginPort& port);
  void Remove(const PluginPort& port);
  // nullptr: it is not connected.
  std::shared_ptr<HostedPlugin> Find(const PluginPort& port) const;
  const HostedPlugins& plugins() const { return plugins_; }
  // The plugins that have subscribed to the event.
  HostedPlugins Wanting(api::Event event) const;
  bool AnyWants(api::Event event) const;

  // Asks the plugins one after the other. The first refusal of a request ends it: `done` gets its
  // status, which names the plugin. `done` runs at once if all answer at once. When the budget is
  // spent, plugins still get notices, but the call does not wait for them.
  void InTurn(Kind kind, HostedPlugins plugins, Budget budget, Ask ask, Done done);
  // Asks all plugins for validation at the same time: `done` runs after the last answer, with the
  // first refusal. If a plugin does not answer, the request is refused, whatever its settings say.
  // Unless the budget was spent before it was asked, the plugin is also disconnected, and its
  // settings decide the other requests that wait for it, so that a hanging plugin refuses at most
  // one request.
  void Together(const HostedPlugins& plugins, const Budget& budget, const Ask& ask, Done done);

 private:
  struct Round;

  void Continue(const std::shared_ptr<Round>& round);
  // OK: the event goes on. Any other status is the refusal.
  Status Judge(Kind kind, const HostedPlugin& plugin, const Status& answer);
  Status JudgeValidation(HostedPlugin& plugin, bool asked, const Status& answer);

  const std::function<void()> ignored_;
  Logger& log_;
  RateLimit limit_;
  HostedPlugins plugins_;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
