// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/hook_hosting.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/hooks/hook_port.h"

namespace resmgr {

HookHosting::HookHosting(const DoorContext& context, Inventory& inventory,
                         HookHostingOptions options)
    : context_(context),
      directory_(std::move(options.directory)),
      timeout_(options.timeout),
      log_(GetLogger("hooks")),
      clock_(context.loop),
      servers_(context.loop, context.flushes, options.timeout, context.metrics),
      stage_({.loop = context.loop,
              .clock = clock_,
              .inventory = inventory,
              .servers = servers_,
              .metrics = context.metrics},
             std::move(options.stage)) {
  if (context_.metrics == nullptr) return;
  servers_.OnReadyChanged(
      [metrics = context_.metrics](size_t ready) { metrics->SetReadyPlugins("hook", ready); });
}

HookHosting::~HookHosting() {
  Close();
}

void HookHosting::Start() {
  started_ = true;
  if (!directory_.empty()) Open();
}

void HookHosting::Configure(const HooksConfig& config) {
  stage_.SetSkip(config.skip_key, config.skip_value);
  const bool another_directory = std::exchange(directory_, config.directory) != config.directory;
  const bool another_timeout = std::exchange(timeout_, config.timeout) != config.timeout;
  if (another_timeout) servers_.SetTimeout(timeout_);
  if (!started_) return;
  if (directory_.empty()) {
    Close();
  } else if (!serving_) {
    Open();
  } else if (another_directory || another_timeout) {
    Watch();
  }
}

void HookHosting::Open() {
  serving_ = true;
  context_.pipeline.Add(stage_);
  stage_.Start();
  first_read_ = context_.loop.After(kFirstRead, [this] {
    log_.Warn("hook directory {} has not been read yet: calls continue without its servers",
              Printable(directory_));
    stage_.OpenServers();
  });
  Watch();
}

// Stops asking hook servers about new calls; calls under way continue with their servers.
void HookHosting::Close() {
  if (!std::exchange(serving_, false)) return;
  context_.pipeline.Remove(stage_);
  watch_.reset();
  first_read_ = nullptr;
  servers_.Update({});
  stage_.Forget();
}

void HookHosting::Watch() {
  watch_.emplace(context_.loop, hooks::HookDirectoryWatch::Options{.directory = directory_},
                 [this](const hooks::HookDirectoryWatch::Files& files) { Take(files); });
}

void HookHosting::Take(const hooks::HookDirectoryWatch::Files& files) {
  servers_.Update(files);
  first_read_ = nullptr;
  if (!stage_.knows_servers()) stage_.OpenServers();
}

std::vector<SeenContainer> HookHosting::seen() const {
  std::vector<SeenContainer> all;
  stage_.view().ForEachContainer([&all](const hooks::HookContainerPtr& container) {
    const auto& pod = container->pod->request;
    SeenContainer& seen = all.emplace_back();
    seen.pod.id = container->pod->id;
    seen.pod.name = pod.pod_meta().name();
    seen.pod.namespace_name = pod.pod_meta().namespace_();
    seen.pod.labels = StringMap(pod.labels().begin(), pod.labels().end());
    seen.container.id = container->id;
    seen.container.pod_id = container->pod->id;
    seen.container.name = container->request.container_meta().name();
    seen.container.attempt = container->request.container_meta().attempt();
    seen.container.requested = hooks::FromHookResources(container->request.container_resources());
  });
  return all;
}

std::vector<PluginView> HookHosting::plugins() const {
  std::vector<PluginView> views;
  for (const auto& server : servers_.All()) {
    const hooks::HookConnection& connection = server->connection();
    const PluginStats& stats = connection.stats();
    views.push_back({.kind = "hook",
                     .name = server->settings().file,
                     .state = connection.connected() ? PluginView::State::kReady
                                                     : PluginView::State::kDisconnected,
                     .events = hooks::NamesOf(server->settings().points),
                     .calls = stats.calls(),
                     .failures = stats.failures(),
                     .last_error = stats.last_error(),
                     .p50_micros = stats.MedianMicros()});
  }
  for (const auto& unusable : servers_.Unusable()) {
    views.push_back({.kind = "hook",
                     .name = unusable->settings().file,
                     .state = PluginView::State::kFailed,
                     .events = hooks::NamesOf(unusable->settings().points),
                     .last_error = std::string(Message(unusable->why()))});
  }
  return views;
}

std::vector<Problem> HookHosting::problems() const {
  std::vector<Problem> problems;
  if (watch_ && !watch_->complaints().empty()) {
    problems.push_back(
        {.kind = "plugin",
         .message = fmt::format("hook directory {} cannot be read; the former servers stay "
                                "in force: {}",
                                directory_, watch_->complaints().back()),
         .objects = {directory_},
         .next = "ls -l " + directory_});
  }
  for (const auto& [name, why] : servers_.Outdated()) {
    problems.push_back(
        {.kind = "plugin",
         .message = fmt::format("hook file {} is not used; the former version stays in force: "
                                "{}",
                                name, Message(why)),
         .objects = {name},
         .next = "cri-resmgr-ctl plugins"});
  }
  return problems;
}

}  // namespace resmgr
