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
  // What the daemon says: "" accepted, else why not. An error: it was not reached, or gave up.
  using Done = std::function<void(StatusOr<std::string> verdict)>;
  // What becomes of the daemon that gave the last verdict. All are set.
  struct Callbacks {
    // It is gone; another one, which may know nothing, may come.
    std::function<void()> lost{};
    // It is connected, but has answered nothing for so long.
    std::function<void(std::chrono::milliseconds since)> silent{};
    // It was silent and answers again: it is the same one.
    std::function<void()> answers{};
  };

  virtual ~ConfigClient() = default;
  virtual void SetCallbacks(Callbacks callbacks) = 0;
  // One at a time.
  virtual void SetConfig(const std::map<std::string, std::string>& config, Done done) = 0;
};

}  // namespace resmgr::agent
