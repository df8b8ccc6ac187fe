// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/keeper.h"

namespace resmgr {

void Keeper::Keep(const ContainerRecord& record) {
  if (state_ == nullptr || record.container.id.empty() || !record.Placeable()) return;
  // A value that the runtime may still refuse is not what it has after a restart.
  if (!record.updates.empty()) return;
  state_->Put(record.container.id, record.container);
}

void Keeper::Forget(const ContainerId& id) {
  if (state_ != nullptr && !id.empty()) state_->Erase(id);
}

void Keeper::ForgetTheRest() {
  if (state_ == nullptr) return;
  state_->Retain([this](const ContainerId& id) { return store_.FindById(id) != nullptr; });
}

const SavedContainer* Keeper::Find(const ContainerId& id) const {
  return state_ == nullptr ? nullptr : state_->Find(id);
}

}  // namespace resmgr
