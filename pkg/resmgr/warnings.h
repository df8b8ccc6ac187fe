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

// Warns of annotations that the policy ignores because of the pod's namespace (Policy::Unheeded)
// when a container is placed, found running, or comes under another policy. Also warns, once for
// each pod, of annotations that are probably mistyped. On the loop's thread.
class AnnotationWarnings final : public Observer {
 public:
  AnnotationWarnings() : log_(GetLogger("resmgr")) {}

  void OnPlaced(const Act& act) override { Look(act); }
  void OnAdopted(std::span<const Act> acts) override;
  // Called when the policy or its options have changed.
  void Look(const Act& act);

 private:
  void LookForTypos(const Pod& pod);

  Logger& log_;
  std::set<PodSandboxId> looked_at_;  // the pods whose annotations were looked at for typos
};

// Warns of CPU limits that may have no effect: a kernel in user space runs all containers of a pod
// in the sandbox's process, so a container's quota limits nothing, and the daemon sets no quota for
// the sandbox. Pods of handlers with Pinning sandbox or none may be of this kind. One warning for
// each handler. On the loop's thread.
class LimitWarnings final : public Observer {
 public:
  explicit LimitWarnings(const RuntimesConfig& runtimes);

  void OnPlaced(const Act& act) override { Look(act); }
  void OnUpdated(const Act& act) override { Look(act); }
  void OnAdopted(std::span<const Act> acts) override;

 private:
  void Look(const Act& act);

  Logger& log_;
  std::map<std::string, Pinning, std::less<>> handlers_;  // handlers without a warning yet
};

}  // namespace resmgr
