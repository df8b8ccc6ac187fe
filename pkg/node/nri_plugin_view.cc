// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/nri_plugin_view.h"

namespace resmgr {
namespace {

PluginView::State StateOf(nri::PluginState state) {
  switch (state) {
    case nri::PluginState::kReady:
      return PluginView::State::kReady;
    case nri::PluginState::kDisconnected:
      return PluginView::State::kDisconnected;
    case nri::PluginState::kFailed:
      break;
  }
  return PluginView::State::kFailed;
}

}  // namespace

std::vector<PluginView> ViewsOf(const std::vector<nri::PluginStatus>& plugins) {
  std::vector<PluginView> views;
  views.reserve(plugins.size());
  for (const nri::PluginStatus& plugin : plugins) {
    views.push_back({.kind = "nri",
                     .name = plugin.name,
                     .index = plugin.index,
                     .state = StateOf(plugin.state),
                     .events = plugin.events,
                     .calls = plugin.calls,
                     .failures = plugin.failures,
                     .last_error = plugin.last_error,
                     .p50_micros = plugin.p50_micros});
  }
  return views;
}

}  // namespace resmgr
