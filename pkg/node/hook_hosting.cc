// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/hook_hosting.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_names.h"

namespace resmgr {

HookHosting::HookHosting(const DoorContext& context, const std::string& runtime_socket,
                         const std::string& image_socket, HookHostingOptions options)
    : context_(context),
      directory_(std::move(options.directory)),
      log_(GetLogger("hooks")),
      clock_(context.loop),
      runtime_(context.loop, context.flushes, runtime_socket, image_socket),
      servers_(context.loop, context.flushes, options.timeout, context.metrics),
      stage_({.loop = context.loop,
              .clock = clock_,
              .runtime = runtime_,
              .servers = servers_,
              .metrics = context.metrics},
             std::move(options.stage)) {
  context_.pipeline.Add(stage_);
}

HookHosting::~HookHosting() {
  context_.pipeline.Remove(stage_);
}

void HookHosting::Start() {
  stage_.Start();
  first_read_ = context_.loop.After(kFirstRead, [this] {
    log_.Warn("hook directory {} is not read yet: calls go on without its servers",
              Printable(directory_));
    stage_.OpenServers();
  });
  watch_.emplace(context_.loop, hooks::HookDirectoryWatch::Options{.directory = directory_},
                 [this](const hooks::HookDirectoryWatch::Files& files) { Take(files); });
  CountReady();
}

void HookHosting::Take(const hooks::HookDirectoryWatch::Files& files) {
  servers_.Update(files);
  first_read_ = nullptr;
  if (!stage_.knows_servers()) stage_.OpenServers();
}

void HookHosting::CountReady() {
  if (context_.metrics == nullptr) return;
  next_count_ = context_.loop.After(kCountInterval, [this] { CountReady(); });
  const auto all = servers_.All();
  const auto ready = std::ranges::count_if(
      all, [](const auto& server) { return server->connection().connected(); });
  context_.metrics->SetReadyPlugins("hook", static_cast<size_t>(ready));
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
  return views;
}

}  // namespace resmgr
