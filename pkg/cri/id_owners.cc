// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/id_owners.h"

#include <algorithm>

namespace resmgr {

void IdOwners::Add(Kind kind, std::string_view id, Owner owner) {
  Ids& ids = Table(kind);
  if (id.empty() || id.size() > kLongestId) return;
  const auto it = ids.find(id);
  if (it != ids.end()) {
    it->second = {.owner = owner, .time = ++time_};
  } else if (ids.size() < kMostIds) {
    ids.emplace(id, Entry{.owner = owner, .time = ++time_});
  }
}

void IdOwners::Remove(Kind kind, std::string_view id) {
  Ids& ids = Table(kind);
  if (const auto it = ids.find(id); it != ids.end()) ids.erase(it);
}

void IdOwners::SetAll(Kind kind, Owner owner, const std::vector<std::string_view>& ids,
                      ListBegin begin) {
  listed_.emplace(kind, owner);
  for (const std::string_view id : ids)
    Add(kind, id, owner);
  // Those in the list have a later time now.
  std::erase_if(Table(kind), [owner, begin](const auto& entry) {
    return entry.second.owner == owner && entry.second.time <= begin.time;
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
