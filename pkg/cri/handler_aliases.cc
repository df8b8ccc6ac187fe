// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/handler_aliases.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace resmgr {

namespace {

constexpr auto kNote = StateStore::PodNote::kHandler;

}  // namespace

const std::string* HandlerAliases::RuntimesHandler(std::string_view handler) const {
  const auto found = table_.find(handler);
  return found == table_.end() ? nullptr : &found->second;
}

void HandlerAliases::Remember(StateStore* state) {
  state_ = state;
  if (state_ == nullptr) return;
  state_->ForEachNote(kNote, [this](std::string_view id, std::string_view alias) {
    const auto found = table_.find(alias);
    if (found != table_.end()) sandboxes_[std::string(id)] = {.alias = &found->first, .added = 0};
  });
  state_->RetainNotes(kNote, [this](std::string_view id) { return AliasOf(id) != nullptr; });
  while (sandboxes_.size() > kMostSandboxes)
    DropOldest();
  state_->Commit();
}

void HandlerAliases::Add(const PodSandboxId& id, std::string_view alias) {
  const auto found = table_.find(alias);
  if (found == table_.end() || id.empty()) return;
  sandboxes_[std::string(id.value())] = {.alias = &found->first, .added = ++now_};
  if (sandboxes_.size() > kMostSandboxes) DropOldest();
  if (state_ == nullptr) return;
  state_->PutNote(kNote, id, alias);
  state_->Commit();
}

void HandlerAliases::Remove(const PodSandboxId& id) {
  if (sandboxes_.erase(std::string(id.value())) == 0 || state_ == nullptr) return;
  state_->EraseNote(kNote, id);
  state_->Commit();
}

void HandlerAliases::DropOldest() {
  const auto oldest = std::ranges::min_element(
      sandboxes_, {}, [](const auto& entry) { return entry.second.added; });
  Remove(PodSandboxId(oldest->first));
}

const std::string* HandlerAliases::AliasOf(std::string_view id) const {
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : found->second.alias;
}

std::string HandlerAliases::HandlerOf(std::string_view id, std::string_view handler) const {
  const std::string* const alias = AliasOf(id);
  return alias == nullptr ? std::string(handler) : *alias;
}

void HandlerAliases::RetainListed(const std::set<std::string, std::less<>>& listed, Moment begin) {
  std::vector<PodSandboxId> gone;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.added <= begin && !listed.contains(id)) gone.emplace_back(id);
  }
  for (const PodSandboxId& id : gone)
    Remove(id);
}

}  // namespace resmgr
