// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// Configures the use of Koordinator hook servers, which are asked about pods and containers.
struct HooksConfig {
  std::string directory{};                   // directory with a file for each server; "": none
  std::chrono::milliseconds timeout{2'000};  // of one answer, unless a server's file has one
  // Servers are not asked about a pod with this label and value: a hook server that runs in a pod
  // would otherwise be asked about its own start. "": about every pod.
  std::string skip_key = "runtimeproxy.koordinator.sh/skip-hookserver";
  std::string skip_value = "true";
  // The configuration has the module `hooks`, even if it is {}. Ignored by comparisons.
  bool stated = false;

  friend bool operator==(const HooksConfig& a, const HooksConfig& b) {
    return a.directory == b.directory && a.timeout == b.timeout && a.skip_key == b.skip_key &&
           a.skip_value == b.skip_value;
  }
};

// Reads the module `hooks`.
void ReadHooks(MapReader& hooks, HooksConfig& config);
// The configuration for printing, with every option.
ConfigNode HooksNode(const HooksConfig& config);

// "disabled" yields "". kInvalidArgument: the path is not absolute.
StatusOr<std::string> HookDirectoryOf(std::string_view text);
// "" means no key. kInvalidArgument: not a valid label key.
StatusOr<std::string> HookSkipKeyOf(std::string_view text);

}  // namespace resmgr
