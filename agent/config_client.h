// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  // The daemon that gave the last verdict is gone; another one, which may know nothing, may come.
  using Lost = std::function<void()>;

  virtual ~ConfigClient() = default;
  virtual void SetLostCallback(Lost lost) = 0;
  // One at a time.
  virtual void SetConfig(const std::map<std::string, std::string>& config, Done done) = 0;
};

}  // namespace resmgr::agent
