// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/field_owners.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

// Forgets an earlier change of the same number in its other form: as a file of cgroup v2, or as a
// field. Few changes are numbers.
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

// The printable value of the entry with this key. Not for environment variables, arguments, labels
// and annotations, which may be secrets, nor for mounts and devices, which are long.
std::string EntryText(const auto& edits, const std::string& key) {
  const auto* const edit = edits.Find(key);
  if (edit == nullptr) return "";
  if (!edit->value) return "removed";
  return Printable(fmt::format("{}", *edit->value), kShownValue);
}

std::string WideValue(const WideAdjustment& wide, const FieldChange& change) {
  if (change.field == Field::kHugepageLimits) return EntryText(wide.hugepage_limits, change.key);
  if (change.field == Field::kUnified) return EntryText(wide.unified, change.key);
  if (change.field == Field::kBlockioClass) return Text(wide.blockio_class);
  if (change.field == Field::kRdtClass) return Text(wide.rdt_class);
  if (change.field == Field::kCgroupParent) return Text(wide.cgroup_parent);
  return "";
}

}  // namespace

std::string ShownValue(const Adjustment& adjustment, const FieldChange& change) {
  const ResourceValues& values = adjustment.values;
  if (change.field == Field::kCpusetCpus) return ListText(values.cpus, adjustment.clears_cpus());
  if (change.field == Field::kCpusetMems) return ListText(values.mems, adjustment.clears_mems());
  if (change.field == Field::kCpuQuota && values.cpu_quota == -1) return "none";
  const NumberField* const number = NumberFieldOf(change.field);
  if (number != nullptr) return Text(NumberIn(adjustment, *number));
  return adjustment.wide() == nullptr ? "" : WideValue(*adjustment.wide(), change);
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
