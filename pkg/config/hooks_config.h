// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "pkg/config/config_section.h"

namespace resmgr {

// Configures the use of Koordinator hook servers, which are asked about pods and containers.
struct HooksConfig {
  std::string directory{};                   // directory with a file for each server; "": none
  std::chrono::milliseconds timeout{2'000};  // for one answer; a server's file may differ
  // Servers are not asked about a pod with this label and value: a hook server that runs in a pod
  // would otherwise be asked about its own start. "": about every pod.
  std::string skip_key = "runtimeproxy.koordinator.sh/skip-hookserver";
  std::string skip_value = "true";
  // The configuration's text has the module `hooks`, even if it is {}. Ignored by comparisons.
  bool stated = false;

  friend bool operator==(const HooksConfig& a, const HooksConfig& b) {
    return a.directory == b.directory && a.timeout == b.timeout && a.skip_key == b.skip_key &&
           a.skip_value == b.skip_value;
  }
};

// The module `hooks`.
void DescribeHooks(ConfigSection& root, HooksConfig& config);

}  // namespace resmgr
