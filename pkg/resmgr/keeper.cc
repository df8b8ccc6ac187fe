// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/keeper.h"

#include <chrono>
#include <utility>
#include <vector>

namespace resmgr {
namespace {

// A container runs no sooner than this after it was created.
constexpr std::chrono::milliseconds kGather{20};

}  // namespace

Keeper::Keeper(EventLoop& loop, StateStore* state, ContainerStore& store)
    : loop_(loop),
      state_(state),
      store_(store),
      calls_(state == nullptr ? own_calls_ : state->open_calls()) {
  if (state_ != nullptr) state_->BeforeFlush([this] { SaveAll(); });
}

Keeper::~Keeper() {
  if (state_ == nullptr) return;
  SaveAll();
  state_->BeforeFlush(nullptr);
}

void Keeper::Keep(ContainerRecord& record) {
  if (state_ == nullptr || record.unsaved) return;
  record.unsaved = true;
  unsaved_.push_back(record.container.key);
  SaveSoon();
}

void Keeper::SaveSoon() {
  if (timer_ == nullptr) timer_ = loop_.After(kGather, [this] { SaveAll(); });
}

void Keeper::SaveAll() {
  timer_.reset();
  for (const ContainerKey key : unsaved_) {
    if (ContainerRecord* const record = store_.Find(key)) Save(*record);
  }
  unsaved_.clear();
  state_->Commit();
}

void Keeper::Save(ContainerRecord& record) {
  if (!std::exchange(record.unsaved, false)) return;
  if (record.container.id.empty() || !record.Placeable()) return;
  // A value that the runtime may still refuse is not what it has after a restart.
  if (!record.updates.empty()) return;
  state_->Put(record.container.id, record.container, record.pod->pod.qos);
}

void Keeper::Forget(const ContainerId& id) {
  End(Call::kStart, id);
  End(Call::kUpdate, id);
  if (state_ == nullptr) return;
  state_->Erase(id);
  SaveSoon();
}

void Keeper::ForgetTheRest() {
  std::vector<ContainerId> known;
  for (const auto& [key, record] : store_.containers())
    known.push_back(record.container.id);
  calls_.Retain(known);
  if (state_ == nullptr) return;
  state_->Retain(
      [this](std::string_view id) { return store_.FindById(ContainerId(id)) != nullptr; });
  state_->Commit();
}

std::optional<SavedContainer> Keeper::Find(const ContainerId& id) const {
  return state_ == nullptr ? std::nullopt : state_->Find(id);
}

}  // namespace resmgr
