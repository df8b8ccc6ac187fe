// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "pkg/log/log.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Warns of annotations that the policy does not heed because of the pod's namespace
// (Policy::Unheeded), when a container is placed, found running, or comes under another policy. On
// the loop's thread.
class AnnotationWarnings final : public Observer {
 public:
  AnnotationWarnings() : log_(GetLogger("resmgr")) {}

  void OnPlaced(const Act& act) override { Look(act); }
  void OnAdopted(std::span<const Act> acts) override;
  // Called when the policy is another one, or has other options.
  void Look(const Act& act);

 private:
  Logger& log_;
};

}  // namespace resmgr
