// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/dispatch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/log/not_logged.h"

namespace resmgr::nri {

namespace {

Status Lost(const HostedPlugin& plugin) {
  return Unavailable("NRI plugin {} is lost", plugin.name);
}

bool NoAnswer(const Status& answer) {
  return answer.code() == StatusCode::kDeadlineExceeded ||
         answer.code() == StatusCode::kUnavailable;
}

Status Named(const HostedPlugin& plugin, const Status& answer) {
  return MakeStatus(answer.code(),
                    fmt::format("NRI plugin {}: {}", plugin.name, Printable(Message(answer))));
}

void AskOne(Dispatcher::Kind kind, HostedPlugin& plugin, const Budget& budget,
            const Dispatcher::Ask& ask, Dispatcher::Answered answered) {
  if (plugin.port == nullptr) return answered(Lost(plugin));
  const std::chrono::milliseconds timeout = budget.For(plugin.settings());
  if (timeout.count() == 0) {
    // Even when no time is left to wait for their answers, plugins must learn of events.
    if (kind == Dispatcher::Kind::kNotice) {
      ask(plugin, plugin.settings().request_timeout, [](const Status&) {});
    }
    return answered(DeadlineExceeded("no time was left to ask it about this call"));
  }
  ask(plugin, timeout, std::move(answered));
}

}  // namespace

PluginSettings HostedPlugin::settings() const {
  return port == nullptr ? last_settings : port->settings();
}

// If a required plugin does not answer, the request is refused, as if the plugin were missing
// (nri#316).
FailurePolicy HostedPlugin::FailureOf(bool tolerant) const {
  const PluginSettings now = settings();
  return now.required && !tolerant ? FailurePolicy::kFail : now.failure;
}

std::chrono::milliseconds Budget::For(const PluginSettings& settings) const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(Left(*state_));
  return std::clamp(left, milliseconds(0), settings.request_timeout);
}

Budget::Clock::duration Budget::Left(const State& state) {
  return state.spending == 0 ? state.left : state.left - (Clock::now() - state.since);
}

Budget::Spending Budget::Spend() const {
  if (state_->spending++ == 0) state_->since = Clock::now();
  return Spending(nullptr, [state = state_](std::nullptr_t) {
    const Clock::duration left = Left(*state);
    if (--state->spending == 0) state->left = left;
  });
}

Dispatcher::Dispatcher(std::function<void()> ignored)
    : ignored_(std::move(ignored)),
      log_(GetLogger("nri/host")),
      limit_(/*burst=*/10, std::chrono::minutes(1)) {}

void Dispatcher::Add(PluginPort& port) {
  auto plugin = std::make_shared<HostedPlugin>(
      HostedPlugin{.name = port.full_name(), .port = &port, .last_settings = port.settings()});
  // Behind plugins of the same name, whose order NRI leaves open.
  const auto at = std::ranges::upper_bound(plugins_, plugin->name, {},
                                           [](const auto& other) { return other->name; });
  plugins_.insert(at, std::move(plugin));
}

void Dispatcher::Remove(const PluginPort& port) {
  const auto at = std::ranges::find(
      plugins_, &port, [](const auto& plugin) -> const PluginPort* { return plugin->port; });
  if (at == plugins_.end()) return;
  (*at)->last_settings = port.settings();
  (*at)->port = nullptr;
  plugins_.erase(at);
}

std::shared_ptr<HostedPlugin> Dispatcher::Find(const PluginPort& port) const {
  const auto at = std::ranges::find(
      plugins_, &port, [](const auto& plugin) -> const PluginPort* { return plugin->port; });
  return at == plugins_.end() ? nullptr : *at;
}

HostedPlugins Dispatcher::Wanting(api::Event event) const {
  HostedPlugins wanting;
  for (const auto& plugin : plugins_)
    if (plugin->port->Wants(event)) wanting.push_back(plugin);
  return wanting;
}

bool Dispatcher::AnyWants(api::Event event) const {
  return std::ranges::any_of(plugins_,
                             [event](const auto& plugin) { return plugin->port->Wants(event); });
}

struct Dispatcher::Round {
  Kind kind;
  HostedPlugins plugins;
  Budget budget;
  Ask ask;
  Done done;
  size_t next = 0;
  Budget::Spending spending = budget.Spend();
};

void Dispatcher::InTurn(Kind kind, HostedPlugins plugins, Budget budget, Ask ask, Done done) {
  Continue(std::make_shared<Round>(Round{.kind = kind,
                                         .plugins = std::move(plugins),
                                         .budget = std::move(budget),
                                         .ask = std::move(ask),
                                         .done = std::move(done)}));
}

void Dispatcher::Continue(const std::shared_ptr<Round>& round) {
  if (round->next == round->plugins.size()) {
    round->spending = nullptr;
    return round->done(OkStatus());
  }
  const std::shared_ptr<HostedPlugin> plugin = round->plugins[round->next++];
  AskOne(round->kind, *plugin, round->budget, round->ask,
         lifetime_.Guard([this, plugin, round](const Status& answer) {
           if (Status refusal = Judge(round->kind, *plugin, answer); !refusal.ok()) {
             round->spending = nullptr;
             round->done(refusal);
           } else {
             Continue(round);
           }
         }));
}

void Dispatcher::Together(const HostedPlugins& plugins, const Budget& budget, const Ask& ask,
                          Done done) {
  struct Gathering {
    size_t missing;
    Status refusal;
    Done done;
    Budget::Spending spending;
  };
  if (plugins.empty()) return done(OkStatus());
  const auto gathering = std::make_shared<Gathering>(Gathering{.missing = plugins.size(),
                                                               .refusal = OkStatus(),
                                                               .done = std::move(done),
                                                               .spending = budget.Spend()});
  for (const std::shared_ptr<HostedPlugin>& plugin : plugins) {
    // If it is not asked, because other plugins have used up the time, it is not to blame.
    const bool asked = budget.For(plugin->settings()).count() > 0;
    const auto answered = lifetime_.Guard([this, plugin, asked, gathering](const Status& answer) {
      Status refusal = JudgeValidation(*plugin, asked, answer);
      if (gathering->refusal.ok()) gathering->refusal = std::move(refusal);
      if (--gathering->missing > 0) return;
      gathering->spending = nullptr;
      gathering->done(gathering->refusal);
    });
    AskOne(Kind::kRequest, *plugin, budget, ask, answered);
  }
}

Status Dispatcher::JudgeValidation(HostedPlugin& plugin, bool asked, const Status& answer) {
  if (answer.ok()) return answer;
  if (!NoAnswer(answer) || !asked) return Named(plugin, answer);
  if (std::exchange(plugin.unvalidated, true)) return Judge(Kind::kRequest, plugin, answer);
  const Status why = Annotate(answer, "it has not validated a container");
  Status refusal = Named(plugin, why);
  if (plugin.port != nullptr) plugin.port->End(why);
  return refusal;
}

Status Dispatcher::Judge(Kind kind, const HostedPlugin& plugin, const Status& answer) {
  if (answer.ok()) return answer;
  const bool answered = !NoAnswer(answer);
  const FailurePolicy failure = plugin.FailureOf(kind == Kind::kTolerant);
  if (kind != Kind::kNotice && (answered || failure == FailurePolicy::kFail)) {
    return Named(plugin, answer);
  }
  if (!answered && ignored_) ignored_();
  if (const auto suppressed = limit_.Pass(RateLimit::Clock::now())) {
    log_.Warn("NRI plugin {}: {}; the request continues without it{}", plugin.name,
              Printable(Describe(answer)), NotLogged(*suppressed));
  }
  return OkStatus();
}

}  // namespace resmgr::nri
