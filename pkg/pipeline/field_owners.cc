// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/field_owners.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

// The former change may have said the number by a file, and this one by the field, or the other way
// round. Few changes are numbers.
void ForgetOtherForms(const FieldChange& change, std::vector<FieldOwner>& owners) {
  const FieldChange meaning = MeaningOf(change);
  if (meaning.field > Field::kMemorySwapLimit) return;
  std::erase_if(owners, [&change, &meaning](const FieldOwner& former) {
    return former.change != change && MeaningOf(former.change) == meaning;
  });
}

}  // namespace

FieldOwners::Containers::iterator FieldOwners::Find(std::string_view id) {
  const auto found = owners_.lower_bound(id);
  if (id.empty() || found == owners_.end() || !found->first.starts_with(id)) return owners_.end();
  if (found->first == id) return found;
  const auto next = std::next(found);
  const bool ambiguous = next != owners_.end() && next->first.starts_with(id);
  return ambiguous ? owners_.end() : found;
}

void FieldOwners::Add(std::string_view id, std::vector<FieldOwner> owners) {
  if (id.empty() || owners.empty()) return;
  auto known = Find(id);
  if (known == owners_.end()) {
    if (owners_.size() == kMostContainers) Forget(order_.front());
    known = owners_.try_emplace(std::string(id)).first;
    known->second.place = order_.insert(order_.end(), known->first);
  }
  std::vector<FieldOwner>& mine = known->second.owners;
  for (FieldOwner& owner : owners) {
    ForgetOtherForms(owner.change, mine);
    const auto before = std::ranges::find(mine, owner.change, &FieldOwner::change);
    if (before != mine.end()) {
      *before = std::move(owner);
    } else if (mine.size() < kMostOwners) {
      mine.push_back(std::move(owner));
    }
  }
}

void FieldOwners::Forget(std::string_view id) {
  const auto known = Find(id);
  if (known == owners_.end()) return;
  order_.erase(known->second.place);
  owners_.erase(known);
}

const std::vector<FieldOwner>& FieldOwners::Of(const ContainerId& id) const {
  static const auto* const kNone = new std::vector<FieldOwner>;
  const auto known = owners_.find(id.value());
  return known == owners_.end() ? *kNone : known->second.owners;
}

}  // namespace resmgr
