// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/field_owners.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

// The former change may have set the number by a file, and this one by the field, or vice versa.
// Few changes are numbers.
void ForgetOtherForms(const FieldChange& change, std::vector<FieldOwner>& owners) {
  const FieldChange meaning = MeaningOf(change);
  if (meaning.field > Field::kMemorySwapLimit) return;
  std::erase_if(owners, [&change, &meaning](const FieldOwner& former) {
    return former.change != change && MeaningOf(former.change) == meaning;
  });
}

constexpr size_t kShownValue = 64;

std::string Text(const std::optional<int64_t>& number) {
  return number ? fmt::format("{}", *number) : "";
}

std::string Text(const std::optional<std::string>& text) {
  return text ? Printable(*text, kShownValue) : "";
}

template <typename Set>
std::string ListText(const std::optional<Set>& set, bool clears) {
  if (set) return set->ToString();
  return clears ? "any" : "";
}

// nullptr: there is no edit with this key.
template <typename Edit>
std::string EditText(const Edit* edit) {
  if (edit == nullptr) return "";
  if (!edit->value) return "removed";
  return Printable(fmt::format("{}", *edit->value), kShownValue);
}

std::string WideValue(const WideAdjustment& wide, const FieldChange& change) {
  switch (change.field) {
    case Field::kMemoryLimit:
      return Text(wide.memory_limit);
    case Field::kMemorySwapLimit:
      return Text(wide.memory_swap_limit);
    case Field::kOomScoreAdj:
      return Text(wide.oom_score_adj);
    case Field::kHugepageLimits:
      return EditText(wide.hugepage_limits.Find(change.key));
    case Field::kUnified:
      return EditText(wide.unified.Find(change.key));
    case Field::kBlockioClass:
      return Text(wide.blockio_class);
    case Field::kRdtClass:
      return Text(wide.rdt_class);
    case Field::kCgroupParent:
      return Text(wide.cgroup_parent);
    default:
      return "";
  }
}

}  // namespace

std::string ShownValue(const Adjustment& adjustment, const FieldChange& change) {
  const ResourceValues& values = adjustment.values;
  switch (change.field) {
    case Field::kCpusetCpus:
      return ListText(values.cpus, adjustment.clears_cpus());
    case Field::kCpusetMems:
      return ListText(values.mems, adjustment.clears_mems());
    case Field::kCpuShares:
      return Text(values.cpu_shares);
    case Field::kCpuQuota:
      return values.cpu_quota == -1 ? "none" : Text(values.cpu_quota);
    case Field::kCpuPeriod:
      return Text(values.cpu_period);
    default:
      return adjustment.wide() == nullptr ? "" : WideValue(*adjustment.wide(), change);
  }
}

bool LookLikeOneProgram(std::string_view a, std::string_view b) {
  const auto bare = [](std::string_view name) {
    constexpr std::string_view kEnding = ".json";
    constexpr size_t kIndex = 3;  // "00-" in front of a name
    if (name.ends_with(kEnding)) name.remove_suffix(kEnding.size());
    if (name.size() > kIndex && name[kIndex - 1] == '-') name.remove_prefix(kIndex);
    return name;
  };
  const std::string_view x = bare(a);
  const std::string_view y = bare(b);
  return !x.empty() && !y.empty() && (x.starts_with(y) || y.starts_with(x));
}

FieldOwners::Containers::iterator FieldOwners::Find(std::string_view id) {
  const auto found = owners_.lower_bound(id);
  if (id.empty() || found == owners_.end() || !found->first.starts_with(id)) return owners_.end();
  if (found->first == id) return found;
  const auto next = std::next(found);
  const bool ambiguous = next != owners_.end() && next->first.starts_with(id);
  return ambiguous ? owners_.end() : found;
}

FieldOwners::Known& FieldOwners::At(std::string_view id) {
  auto known = Find(id);
  if (known == owners_.end()) {
    if (owners_.size() == kMostContainers) Forget(order_.front());
    known = owners_.try_emplace(std::string(id)).first;
    known->second.place = order_.insert(order_.end(), known->first);
  }
  return known->second;
}

void FieldOwners::AddLeftOut(std::string_view id, std::vector<std::string> lines) {
  if (id.empty() || lines.empty()) return;
  std::vector<std::string>& mine = At(id).left_out;
  for (std::string& line : lines) {
    if (mine.size() == kMostLeftOut) break;
    if (std::ranges::find(mine, line) == mine.end()) mine.push_back(std::move(line));
  }
}

void FieldOwners::Add(std::string_view id, std::vector<FieldOwner> owners) {
  if (id.empty() || owners.empty()) return;
  std::vector<FieldOwner>& mine = At(id).owners;
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

const std::vector<std::string>& FieldOwners::LeftOutOf(const ContainerId& id) const {
  static const auto* const kNone = new std::vector<std::string>;
  const auto known = owners_.find(id.value());
  return known == owners_.end() ? *kNone : known->second.left_out;
}

}  // namespace resmgr
