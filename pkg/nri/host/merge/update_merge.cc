// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/update_merge.h"

#include "pkg/nri/host/merge/resource_fields.h"

namespace resmgr::nri {

Status UpdateMerge::Add(std::string_view plugin, const ContainerUpdateList& updates) {
  const FieldLedger::Mark before = ledger_.mark();
  const auto granted = ClaimUpdates(updates, plugin, {}, ledger_);
  if (!granted.ok()) {
    ledger_.UndoTo(before);
    return granted.status();
  }
  ledger_.Keep();
  const std::string& target_id = request_.container().id();
  api::LinuxResources wanted;  // of the target, in total: it is applied once
  for (const api::ContainerUpdate* const update : *granted) {
    if (update->container_id() == target_id) {
      AddResources(update->linux().resources(), wanted);
    } else {
      updates_.Add(*update);
    }
  }
  if (!AnySet(wanted)) return OkStatus();
  AddResources(wanted, target_);
  OverlayResources(wanted, *request_.mutable_linux_resources());
  return OkStatus();
}

}  // namespace resmgr::nri
