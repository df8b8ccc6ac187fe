// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/nri/host/plugin_port.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// A plugin as those that ask it know it, also when it is lost in between.
struct HostedPlugin {
  std::string name;                // index and name
  PluginPort* port = nullptr;      // null once it is lost
  PluginSettings last_settings{};  // when it was lost
  bool unvalidated = false;        // it has left a request to validate unanswered

  // Those in force now: they may change while it is connected.
  PluginSettings settings() const;
};
using HostedPlugins = std::vector<std::shared_ptr<HostedPlugin>>;

// How much time all plugins have together for one call, which a client waits for, in all its
// phases: before the runtime and after it. Only the time in which plugins are asked counts. Copies
// share it. Loop's thread only.
class Budget {
 public:
  explicit Budget(std::chrono::milliseconds whole)
      : state_(std::make_shared<State>(State{.left = whole})) {}

  // What is left for one of them; 0: nothing.
  std::chrono::milliseconds For(const PluginSettings& settings) const;

  // The budget decreases as long as one of these is held.
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

// The plugins that are connected, in the order in which they are asked: ascending by index and
// name, as NRI has it. Asks several of them about one event, and applies what their settings say of
// those that do not answer. Loop's thread only.
class Dispatcher {
 public:
  // What became of asking one plugin. OK: it agrees. DeadlineExceeded or Unavailable: no answer,
  // and FailurePolicy tells what follows. Anything else refuses.
  using Answered = std::function<void(const Status&)>;
  // Asks one plugin, whose port is not null; answers once, at once or later.
  using Ask = std::function<void(HostedPlugin& plugin, std::chrono::milliseconds, Answered)>;
  using Done = std::function<void(const Status&)>;
  // What an event is for those that are asked: its refusal ends it, or is logged and all others are
  // told as well.
  enum class Kind { kRequest, kNotice };

  Dispatcher();

  void Add(PluginPort& port);
  void Remove(const PluginPort& port);
  // nullptr: it is not connected.
  std::shared_ptr<HostedPlugin> Find(const PluginPort& port) const;
  const HostedPlugins& plugins() const { return plugins_; }
  // Those that have subscribed to the event.
  HostedPlugins Wanting(api::Event event) const;
  bool AnyWants(api::Event event) const;

  // One after the other. The first that refuses a request ends it: `done` gets its status, which
  // names it. `done` runs at once where all answer at once. When the budget is spent, plugins still
  // get notices, but the call does not wait for them.
  void InTurn(Kind kind, HostedPlugins plugins, Budget budget, Ask ask, Done done);
  // Validation. All at once: `done` runs when the last one has answered, with the first refusal. A
  // plugin that does not answer refuses, whatever its settings say, and its connection is ended;
  // for other requests that wait for it then its settings count, so that one that hangs refuses one
  // request at most.
  void Together(const HostedPlugins& plugins, Budget budget, const Ask& ask, Done done);

  // How often something went on without a plugin that did not answer.
  uint64_t ignored_failures() const { return ignored_failures_; }

 private:
  struct Round;

  void Continue(const std::shared_ptr<Round>& round);
  // OK: it goes on. Else what refuses.
  Status Judge(Kind kind, const HostedPlugin& plugin, const Status& answer);
  Status JudgeValidation(HostedPlugin& plugin, bool asked, const Status& answer);

  Logger& log_;
  RateLimit limit_;
  HostedPlugins plugins_;
  uint64_t ignored_failures_ = 0;
  Lifetime lifetime_;
};

}  // namespace resmgr::nri
