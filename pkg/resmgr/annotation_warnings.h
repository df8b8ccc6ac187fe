// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>

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

}  // namespace resmgr
