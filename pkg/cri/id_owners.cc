// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/id_owners.h"

#include <algorithm>

namespace resmgr {

bool IdOwners::Add(Kind kind, std::string_view id, Owner owner) {
  Ids& ids = Table(kind);
  if (id.empty() || id.size() > kLongestId) return true;
  const auto it = ids.find(id);
  if (it == ids.end()) {
    if (ids.size() < kMostIds) ids.emplace(id, Entry{.owner = owner, .time = ++time_});
    return true;
  }
  if (it->second.owner != owner && kind != Kind::kPodUid) {
    NoteConflict({.kind = kind, .id = id, .owner = it->second.owner, .claimant = owner});
    return false;
  }
  it->second = {.owner = owner, .time = ++time_};
  return true;
}

void IdOwners::Remove(Kind kind, std::string_view id, Owner owner) {
  Ids& ids = Table(kind);
  const auto it = ids.find(id);
  if (it == ids.end() || it->second.owner != owner) return;
  ids.erase(it);
  EndConflict(kind, id);
}

bool IdOwners::IsOfOther(Kind kind, std::string_view id, Owner owner) const {
  const auto it = Table(kind).find(id);
  return it != Table(kind).end() && it->second.owner != owner;
}

void IdOwners::NoteConflict(const Conflict& conflict) {
  const auto known = conflicts_.find({conflict.kind, std::string(conflict.id)});
  if (known != conflicts_.end() && known->second == conflict.claimant) return;
  if (known == conflicts_.end() && conflicts_.size() < kMostConflicts)
    conflicts_.emplace(std::pair(conflict.kind, std::string(conflict.id)), conflict.claimant);
  if (tell_) tell_(conflict);
}

void IdOwners::EndConflict(Kind kind, std::string_view id) {
  if (!conflicts_.empty()) conflicts_.erase({kind, std::string(id)});
}

void IdOwners::SetAll(Kind kind, Owner owner, const std::vector<std::string_view>& ids,
                      ListBegin begin) {
  listed_.emplace(kind, owner);
  if (!conflicts_.empty()) {
    const std::set<std::string_view> listed(ids.begin(), ids.end());
    std::erase_if(conflicts_, [&](const auto& conflict) {
      return conflict.first.first == kind && conflict.second == owner &&
             !listed.contains(conflict.first.second);
    });
  }
  for (const std::string_view id : ids)
    (void)Add(kind, id, owner);
  // The listed ids have got a later time from Add, so an id that is older than the list is missing
  // in it.
  std::erase_if(Table(kind), [this, kind, owner, begin](const auto& entry) {
    const bool gone = entry.second.owner == owner && entry.second.time <= begin.time;
    if (gone) EndConflict(kind, entry.first);
    return gone;
  });
}

bool IdOwners::Has(Kind kind, Owner owner) const {
  return std::ranges::any_of(Table(kind),
                             [owner](const auto& entry) { return entry.second.owner == owner; });
}

std::vector<std::string_view> IdOwners::IdsOf(Kind kind, Owner owner) const {
  std::vector<std::string_view> ids;
  for (const auto& [id, entry] : Table(kind)) {
    if (entry.owner == owner) ids.push_back(id);
  }
  return ids;
}

StatusOr<std::optional<IdOwners::Owner>> IdOwners::Find(Kind kind,
                                                        std::string_view id_or_beginning) const {
  const Ids& ids = Table(kind);
  std::optional<Owner> owner;
  if (id_or_beginning.empty()) return owner;
  if (kind == Kind::kPodUid) {
    if (const auto it = ids.find(id_or_beginning); it != ids.end()) owner = it->second.owner;
    return owner;
  }
  for (auto it = ids.lower_bound(id_or_beginning);
       it != ids.end() && it->first.starts_with(id_or_beginning); ++it) {
    if (it->first.size() == id_or_beginning.size()) return {it->second.owner};
    if (owner && *owner != it->second.owner) {
      return InvalidArgument("several runtimes have an id that begins with {}", id_or_beginning);
    }
    owner = it->second.owner;
  }
  return owner;
}

}  // namespace resmgr
