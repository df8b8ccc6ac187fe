// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// Koordinator hook servers, which are asked about pods and containers.
struct HooksConfig {
  std::string directory{};                   // with a file for each server; "": none are asked
  std::chrono::milliseconds timeout{2'000};  // for one answer, where a server's file has none
  // Servers are not asked about a pod with this label and value: a hook server that runs in a pod
  // would have to answer for its own start. "": about every pod.
  std::string skip_key = "runtimeproxy.koordinator.sh/skip-hookserver";
  std::string skip_value = "true";
  // A configuration said something of hook servers, if only {}: this is not compared.
  bool stated = false;

  friend bool operator==(const HooksConfig& a, const HooksConfig& b) {
    return a.directory == b.directory && a.timeout == b.timeout && a.skip_key == b.skip_key &&
           a.skip_value == b.skip_value;
  }
};

// Reads the module `hooks`.
void ReadHooks(MapReader& hooks, HooksConfig& config);
// The same, for printing: with every option.
ConfigNode HooksNode(const HooksConfig& config);

// "disabled" is none, "". InvalidArgument: the path is not absolute.
StatusOr<std::string> HookDirectoryOf(std::string_view text);
// "" is none. InvalidArgument: no label can have this key.
StatusOr<std::string> HookSkipKeyOf(std::string_view text);

}  // namespace resmgr
