// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/nri/host/session/plugin_registry.h"

namespace resmgr {

// A plugin of a front door for display: an NRI plugin, or a hook server. A value.
struct PluginView {
  using State = nri::PluginState;

  std::string kind{};   // "nri" or "hook"
  std::string name{};   // "logger"
  std::string index{};  // "10"; "" for hook servers
  State state = State::kDisconnected;
  std::vector<std::string> events{};  // subscribed ones
  uint64_t calls = 0;
  uint64_t failures = 0;  // refused, late and lost calls together
  std::string last_error{};
  uint64_t p50_micros = 0;  // median of recent answers; 0: no answers yet
};

// A container that a front door knows from the calls that passed, without a brain: identities,
// labels, annotations, and its present resources in `requested`. Its state and a policy's decisions
// are unknown. A value.
struct SeenContainer {
  Pod pod;
  Container container;
};

}  // namespace resmgr
