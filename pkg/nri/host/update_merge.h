// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/container_updates.h"
#include "pkg/nri/host/field_ledger.h"

namespace resmgr::nri {

// What the plugins want of containers that exist, merged in the order in which they are asked:
// while one of them, the target, is updated, or while one is stopped. A field is set by one plugin.
// Takes time in proportion to the replies. Thread-compatible.
class UpdateMerge {
 public:
  // While a container is stopped: without a target.
  UpdateMerge() = default;
  // The target and what is wanted of it so far; its id is the one that plugins know.
  explicit UpdateMerge(api::UpdateContainerRequest request) : request_(std::move(request)) {}

  // Takes a plugin's reply; `plugin` is its full name. Errors as of AdjustmentMerge; they change
  // nothing.
  Status Add(std::string_view plugin, const ContainerUpdateList& updates);

  // What the next plugin is asked: the target's resources as wanted first, overlaid with what
  // plugins have set (NRI 0.6).
  const api::UpdateContainerRequest& request() const { return request_; }
  // Of the target, what plugins have set, and no more.
  const api::LinuxResources& target() const { return target_; }
  // Of other containers.
  const std::vector<api::ContainerUpdate>& updates() const { return updates_.all(); }

  // Of one container, which plugins know by this id.
  std::vector<OwnedField> owned(std::string_view container_id) const {
    return ledger_.Of(container_id);
  }

 private:
  api::UpdateContainerRequest request_;
  api::LinuxResources target_;
  ContainerUpdates updates_;
  FieldLedger ledger_;
};

}  // namespace resmgr::nri
