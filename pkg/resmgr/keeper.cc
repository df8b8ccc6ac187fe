// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/keeper.h"

#include <vector>

namespace resmgr {

void Keeper::Keep(const ContainerRecord& record) {
  if (state_ == nullptr || record.container.id.empty() || !record.Placeable()) return;
  // A value that the runtime may still refuse is not what it has after a restart.
  if (!record.updates.empty()) return;
  state_->Put(record.container.id, record.container);
}

void Keeper::Forget(const ContainerId& id) {
  End(Call::kStart, id);
  End(Call::kUpdate, id);
  if (state_ != nullptr && !id.empty()) state_->Erase(id);
}

void Keeper::ForgetTheRest() {
  std::vector<ContainerId> known;
  for (const auto& [key, record] : store_.containers())
    known.push_back(record.container.id);
  calls_.Retain(known);
  if (state_ == nullptr) return;
  state_->Retain([this](const ContainerId& id) { return store_.FindById(id) != nullptr; });
}

const SavedContainer* Keeper::Find(const ContainerId& id) const {
  return state_ == nullptr ? nullptr : state_->Find(id);
}

}  // namespace resmgr
