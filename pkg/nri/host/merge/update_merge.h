// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/merge/container_updates.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// Merges plugins' updates of existing containers, in the order in which the plugins are asked:
// while one of them, the target, is updated, or while one is stopped. A field is set by one plugin.
// Takes time in proportion to the replies. Thread-compatible.
class UpdateMerge {
 public:
  // For a stop: without a target.
  UpdateMerge() = default;
  // The target with its requested resources; its id is the one that plugins know.
  explicit UpdateMerge(api::UpdateContainerRequest request) : request_(std::move(request)) {}

  // Takes a plugin's reply; `plugin` is its full name. Errors are those of AdjustmentMerge::Add;
  // they change nothing.
  Status Add(std::string_view plugin, const ContainerUpdateList& updates);

  // The request to the next plugin: the target's requested resources, overlaid with the plugins'
  // values (NRI 0.6).
  const api::UpdateContainerRequest& request() const { return request_; }
  // The plugins' values for the target, and no others.
  const api::LinuxResources& target() const { return target_; }
  // The updates of other containers.
  const std::vector<api::ContainerUpdate>& updates() const { return updates_.all(); }

  // The owned fields of one container, which plugins know by this id.
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
