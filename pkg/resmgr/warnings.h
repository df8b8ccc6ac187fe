// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "pkg/config/runtimes_config.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Warns of annotations that the policy does not heed because of the pod's namespace
// (Policy::Unheeded), when a container is placed, found running, or comes under another policy; and
// once for each pod of those that are probably mistyped. On the loop's thread.
class AnnotationWarnings final : public Observer {
 public:
  AnnotationWarnings() : log_(GetLogger("resmgr")) {}

  void OnPlaced(const Act& act) override { Look(act); }
  void OnAdopted(std::span<const Act> acts) override;
  // Called when the policy is another one, or has other options.
  void Look(const Act& act);

 private:
  void LookForTypos(const Pod& pod);

  Logger& log_;
  std::set<PodSandboxId> mistyped_;  // the pods that a warning named
};

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
