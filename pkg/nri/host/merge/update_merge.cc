// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/update_merge.h"

#include "pkg/base/parse.h"
#include "pkg/nri/host/merge/reply_edits.h"

namespace resmgr::nri {

StatusOr<std::vector<const api::ContainerUpdate*>> ClaimUpdates(const ContainerUpdateList& updates,
                                                                std::string_view plugin,
                                                                std::string_view created,
                                                                FieldLedger& ledger) {
  std::vector<const api::ContainerUpdate*> granted;
  for (const api::ContainerUpdate& update : updates) {
    if (update.container_id().empty()) continue;
    if (update.container_id() == created) {
      return InvalidArgument("plugin \"{}\" wants to update the container that is being created",
                             Printable(plugin));
    }
    if (!AnySet(update.linux().resources())) continue;
    const FieldLedger::Mark mark = ledger.mark();
    const Status claimed =
        ClaimResources(update.linux().resources(), ledger.For(update.container_id(), plugin));
    if (claimed.ok()) {
      granted.push_back(&update);
    } else if (update.ignore_failure()) {
      ledger.UndoTo(mark);
    } else {
      return claimed;
    }
  }
  return granted;
}

void ContainerUpdates::Add(const api::ContainerUpdate& update) {
  const auto [place, is_new] = places_.try_emplace(update.container_id(), all_.size());
  if (is_new) {
    all_.emplace_back().set_container_id(update.container_id());
    all_.back().set_ignore_failure(true);
  }
  api::ContainerUpdate& merged = all_[place->second];
  merged.set_ignore_failure(merged.ignore_failure() && update.ignore_failure());
  AddResources(update.linux().resources(), *merged.mutable_linux()->mutable_resources());
}

Status UpdateMerge::Add(std::string_view plugin, const ContainerUpdateList& updates) {
  const FieldLedger::Mark before = ledger_.mark();
  const auto granted = ClaimUpdates(updates, plugin, {}, ledger_);
  if (!granted.ok()) {
    ledger_.UndoTo(before);
    return granted.status();
  }
  ledger_.Keep();
  const std::string& target_id = request_.container().id();
  api::LinuxResources wanted;  // the sum of this reply's values for the target, to be applied once
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
