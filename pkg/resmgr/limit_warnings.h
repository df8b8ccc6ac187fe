// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>

#include "pkg/config/runtimes_config.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Warns of CPU limits that may have no effect: a kernel in user space runs all containers of a pod
// in the sandbox's process, so that a container's quota limits nothing, and no quota is set for the
// sandbox here. Handlers whose pods may be so are those with Pinning sandbox or none. One warning
// for each of them. On the loop's thread.
class LimitWarnings final : public Observer {
 public:
  explicit LimitWarnings(const RuntimesConfig& runtimes);

  void OnPlaced(const Act& act) override { Look(act); }
  void OnUpdated(const Act& act) override { Look(act); }
  void OnAdopted(std::span<const Act> acts) override;

 private:
  void Look(const Act& act);

  Logger& log_;
  std::map<std::string, Pinning, std::less<>> handlers_;  // that no warning was for
};

}  // namespace resmgr
