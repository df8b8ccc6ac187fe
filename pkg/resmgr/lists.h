// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "pkg/resmgr/adoption.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/claims.h"
#include "pkg/resmgr/creations.h"
#include "pkg/resmgr/endings.h"
#include "pkg/resmgr/pod_limits.h"
#include "pkg/resmgr/set_later.h"
#include "pkg/resmgr/starts.h"

namespace resmgr {

// Takes over the lists of what the runtime holds: adopts new containers, ends those that are gone,
// lets the policy decide about all, and reports what is news. Loop's thread only.
class Lists final : public Synchronizer::Owner {
 public:
  // All must outlive it.
  Lists(Brain& brain, SetLater& set_later, PodLimits& pod_limits, ExitedContainers& exited,
        Endings& endings, Creations& creations, Claims& claims, Starts& starts)
      : brain_(brain),
        set_later_(set_later),
        pod_limits_(pod_limits),
        exited_(exited),
        endings_(endings),
        creations_(creations),
        claims_(claims),
        starts_(starts) {}

  void OnListing() override { listed_at_ = brain_.store.clock(); }
  Status OnInventory(const RuntimeInventory& inventory, const Synchronizer::Removed& gone,
                     bool first) override;
  void OnListFailed(const Status& status) override;
  bool Knows(const Pod& listed) const override;
  bool Knows(const RuntimeContainer& listed) const override;

 private:
  Status TakeOver(const RuntimeInventory& inventory, const Synchronizer::Removed& gone, bool first);
  void FollowConnection();
  void ConfirmInForce(const Adoption& adoption, bool first);
  void ReportFound(const Adoption& adoption);
  void LogHeldCounts(bool first);
  void LogUnclear(const RuntimeInventory::Unclear& unclear);

  Brain& brain_;
  SetLater& set_later_;
  PodLimits& pod_limits_;
  ExitedContainers& exited_;
  Endings& endings_;
  Creations& creations_;
  Claims& claims_;
  Starts& starts_;
  std::pair<size_t, size_t> logged_counts_;  // pods and containers
  bool unclear_logged_ = false;
  bool unlisted_records_ = false;  // the disk may have records of containers that do not exist
  uint64_t listed_at_ = 0;         // the store's clock when the last list was asked for
};

}  // namespace resmgr
