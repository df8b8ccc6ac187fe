// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "pkg/base/status.h"

namespace resmgr::agent {

// The daemon of this node as a receiver of configuration. Callbacks come on the loop's thread,
// never from within a call, and none after the end of the object.
class ConfigClient {
 public:
  // The verdict: "" when the daemon accepted, else its reason. An error: it was not reached, or
  // gave up.
  using Done = std::function<void(StatusOr<std::string> verdict)>;
  // State changes of the daemon that gave the last verdict. All callbacks are set.
  struct Callbacks {
    // The daemon is gone; the next one may have no configuration.
    std::function<void()> lost{};
    // The daemon is connected but has not answered for this long.
    std::function<void(std::chrono::milliseconds since)> silent{};
    // The daemon was silent and answers again; it is the same process.
    std::function<void()> answers{};
  };

  virtual ~ConfigClient() = default;
  virtual void SetCallbacks(Callbacks callbacks) = 0;
  // Sends the configuration. At most one call at a time.
  virtual void SetConfig(const std::map<std::string, std::string>& config, Done done) = 0;
};

}  // namespace resmgr::agent
