// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/adjustment.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pkg/model/request.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

// Combines two changes of a value: the later value wins; a later list is added to the former one.
template <typename T>
void Combine(std::optional<T>& value, std::optional<T>&& later) {
  if (later) value = std::move(later);
}
void Combine(std::optional<int64_t>& number, const std::optional<int64_t>& later) {
  if (later) number = later;
}
template <typename T>
void Combine(KeyedEdits<T>& edits, KeyedEdits<T>&& later) {
  edits.Merge(std::move(later));
}
template <typename T>
void Combine(std::vector<T>& list, std::vector<T>&& later) {
  list.insert(list.end(), std::make_move_iterator(later.begin()),
              std::make_move_iterator(later.end()));
}

template <typename Set>
void MergeSet(std::optional<Set>& set, std::optional<Set>&& later, bool later_clears) {
  if (later || later_clears) set = std::move(later);
}

void MergeWide(WideAdjustment& base, WideAdjustment&& later) {
  base.clear_cpus |= later.clear_cpus;
  base.clear_mems |= later.clear_mems;
  ForEachWideField([&base, &later](Field /*field*/, auto member) {
    Combine(base.*member, std::move(later.*member));
  });
}

const std::string& KeyOf(const std::string& element) {
  return element;
}
const std::string& KeyOf(const OciHook& hook) {
  return hook.path;
}

// Appends a change for each entry that the member sets.
template <typename T>
void AddChanges(Field field, const std::optional<T>& value, std::vector<FieldChange>& changes) {
  if (value) changes.push_back({.field = field});
}
template <typename T>
void AddChanges(Field field, const KeyedEdits<T>& edits, std::vector<FieldChange>& changes) {
  for (const auto& edit : edits)
    changes.push_back({.field = field, .key = edit.key});
}
template <typename T>
void AddChanges(Field field, const std::vector<T>& list, std::vector<FieldChange>& changes) {
  for (const T& element : list)
    changes.push_back({.field = field, .key = KeyOf(element)});
}

void Unset(const FieldChange& field, Adjustment& adjustment) {
  if (field.field == Field::kCpusetCpus) adjustment.values.cpus.reset();
  if (field.field == Field::kCpusetMems) adjustment.values.mems.reset();
  if (field.field == Field::kCpuQuota) adjustment.values.cpu_period.reset();
  const NumberField* const number = NumberFieldOf(field.field);
  if (number != nullptr && NumberIn(adjustment, *number)) NumberOf(adjustment, *number).reset();
  // The request may have a limit of its own for this size, which must be removed, too.
  if (field.field == Field::kHugepageLimits && adjustment.wide() != nullptr) {
    adjustment.Wide().hugepage_limits.Remove(field.key);
  }
}

// Unsets each field that one of these files sets.
void UnsetWhatFilesSay(const KeyedEdits<std::string>& unified, Adjustment& adjustment) {
  for (const auto& edit : unified) {
    if (!edit.value) continue;
    if (const auto field = FieldOfFile(edit.key, *edit.value)) Unset(*field, adjustment);
  }
}

// Removes from `base` each value that `later` sets in the other form (field or file): otherwise
// runtimes would get both. If a file is removed from `base`, its removal stays, and also removes
// the request's file.
void GiveWay(Adjustment& base, const Adjustment& later) {
  if (later.wide() != nullptr) UnsetWhatFilesSay(later.wide()->unified, base);
  if (base.wide() == nullptr || base.wide()->unified.empty()) return;
  std::vector<std::string> over;
  for (const auto& edit : base.wide()->unified) {
    const auto field = edit.value ? FieldOfFile(edit.key, *edit.value) : std::nullopt;
    if (field && later.Says(*field)) over.push_back(edit.key);
  }
  for (const std::string& file : over)
    base.Wide().unified.Remove(file);
}

template <typename T>
void Take(const std::optional<T>& from, std::optional<T>& to) {
  if (from) to = from;
}

StringMap Edited(const StringMap& map, const KeyedEdits<std::string>& edits) {
  if (edits.empty()) return map;
  std::vector<StringMap::value_type> entries;
  for (const auto& entry : map)
    if (edits.Find(entry.first) == nullptr) entries.push_back(entry);
  for (const auto& edit : edits)
    if (edit.value) entries.emplace_back(edit.key, *edit.value);
  return StringMap(std::span(entries));
}

// Applies edits to a list. If several entries have the key of an edit, all but the first are
// dropped, as in the message itself. `keep` adds an unchanged entry to the edited list, `put` adds
// the value of an edit.
template <typename Value, typename List, typename GetKey, typename Keep, typename Put>
void Edit(const KeyedEdits<Value>& edits, const GetKey& key_of, const Keep& keep, const Put& put,
          List& list) {
  if (edits.empty()) return;
  std::unordered_set<std::string_view> placed;
  List edited;
  for (auto&& entry : list) {
    const auto* const edit = edits.Find(key_of(entry));
    if (edit == nullptr) {
      keep(entry, edited);
    } else if (edit->value && placed.insert(edit->key).second) {
      put(*edit, edited);
    }
  }
  for (const auto& edit : edits)
    if (edit.value && !placed.contains(edit.key)) put(edit, edited);
  list = std::move(edited);
}

template <typename Entry>
void EditEntries(const KeyedEdits<Entry>& edits, std::string Entry::*key,
                 std::vector<Entry>& list) {
  Edit(
      edits, [key](const Entry& entry) -> std::string_view { return entry.*key; },
      [](Entry& entry, auto& edited) { edited.push_back(std::move(entry)); },
      [](const auto& edit, auto& edited) { edited.push_back(*edit.value); }, list);
}

void EditEnvironment(const KeyedEdits<std::string>& edits, Environment& environment) {
  Edit(
      edits, [](const EnvironmentVariable& variable) { return variable.name; },
      [](const EnvironmentVariable& variable, Environment& edited) {
        edited.Add(variable.name, variable.value);
      },
      [](const auto& edit, Environment& edited) { edited.Add(edit.key, *edit.value); },
      environment);
}

void OverlayResources(const Adjustment& so_far, LinuxResources& resources) {
  const LinuxResources values = AsResources(so_far.values);
  resources = Merged(std::move(resources), values);
  if (so_far.wide() == nullptr) return;
  const WideAdjustment& wide = *so_far.wide();
  if (so_far.clears_cpus()) resources.cpuset_cpus.reset();
  if (so_far.clears_mems()) resources.cpuset_mems.reset();
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr && !number.decided()) {
      Take(wide.*number.changed, resources.*number.requested);
    }
  }
  for (const auto& [size, limit] : wide.hugepage_limits) {
    if (limit) {
      resources.hugepage_limits[size] = *limit;
    } else {
      resources.hugepage_limits.erase(size);
    }
  }
  for (const auto& [file, value] : wide.unified) {
    const auto said = value ? FieldOfFile(file, *value) : std::nullopt;
    if (said) Unset(*said, resources);
  }
}

void OverlayDetails(const WideAdjustment& wide, ContainerDetails& details) {
  EditEnvironment(wide.environment, details.environment);
  EditEntries(wide.mounts, &Mount::container_path, details.mounts);
  EditEntries(wide.devices, &Device::container_path, details.devices);
  EditEntries(wide.resource_limits, &ResourceLimit::type, details.resource_limits);
  if (wide.args) {
    details.command = *wide.args;
    details.args.clear();
  }
  Take(wide.memory_swap_limit, details.memory_swap_limit);
  details.unified = Edited(details.unified, wide.unified);
  details.cdi_devices.insert(details.cdi_devices.end(), wide.cdi_devices.begin(),
                             wide.cdi_devices.end());
  details.hooks.insert(details.hooks.end(), wide.hooks.begin(), wide.hooks.end());
  if (wide.cgroup_parent) details.cgroup_parent = *wide.cgroup_parent;
  if (wide.seccomp_profile) {
    // A profile that is given as JSON has no path.
    const bool is_file = wide.seccomp_profile->starts_with('/');
    details.security.seccomp = {.kind = SeccompProfile::Kind::kLocalhost,
                                .path = is_file ? *wide.seccomp_profile : ""};
  }
}

}  // namespace

bool IsKubeletsOwn(std::string_view key) {
  return key.starts_with("io.kubernetes.");
}

std::string_view ToString(Field field) {
  return kFieldNames[static_cast<size_t>(field)];
}

std::vector<FieldChange> Adjustment::Changes() const {
  std::vector<FieldChange> changes;
  if (values.cpus || clears_cpus()) changes.push_back({.field = Field::kCpusetCpus});
  if (values.mems || clears_mems()) changes.push_back({.field = Field::kCpusetMems});
  AddChanges(Field::kCpuShares, values.cpu_shares, changes);
  AddChanges(Field::kCpuQuota, values.cpu_quota, changes);
  AddChanges(Field::kCpuPeriod, values.cpu_period, changes);
  if (wide_ == nullptr) return changes;
  ForEachWideField(
      [this, &changes](Field field, auto member) { AddChanges(field, (*wide_).*member, changes); });
  return changes;
}

void Adjustment::Merge(Adjustment&& later) {
  GiveWay(*this, later);
  const bool later_clears_cpus = later.clears_cpus();
  const bool later_clears_mems = later.clears_mems();
  MergeSet(values.cpus, std::move(later.values.cpus), later_clears_cpus);
  MergeSet(values.mems, std::move(later.values.mems), later_clears_mems);
  Combine(values.cpu_shares, later.values.cpu_shares);
  Combine(values.cpu_quota, later.values.cpu_quota);
  Combine(values.cpu_period, later.values.cpu_period);
  if (wide_ == nullptr) {
    wide_ = std::move(later.wide_);
  } else if (later.wide_ != nullptr) {
    MergeWide(*wide_, std::move(*later.wide_));
  }
  if (wide_ == nullptr) return;
  if (values.cpus) wide_->clear_cpus = false;
  if (values.mems) wide_->clear_mems = false;
}

bool Adjustment::DropPlacement() {
  bool said = values.cpus || values.mems || clears_cpus() || clears_mems();
  values.cpus.reset();
  values.mems.reset();
  if (wide_ == nullptr) return said;
  wide_->clear_cpus = wide_->clear_mems = false;
  said |= wide_->unified.EraseIf([](const auto& edit) { return IsPlacementFile(edit.key); });
  return said;
}

bool Adjustment::DropKubeletsOwn() {
  if (wide_ == nullptr) return false;
  const auto own = [](const auto& edit) { return IsKubeletsOwn(edit.key); };
  const bool labels = wide_->labels.EraseIf(own);
  return wide_->annotations.EraseIf(own) || labels;
}

void Adjustment::TranslateFiles() {
  if (wide_ == nullptr || wide_->unified.empty()) return;
  Adjustment fields;
  wide_->unified.EraseIf([&fields](const auto& edit) {
    return edit.value && AddAsField(edit.key, *edit.value, fields);
  });
  if (!fields.empty()) Merge(std::move(fields));
}

void Adjustment::YieldToFiles() {
  if (wide_ != nullptr) UnsetWhatFilesSay(wide_->unified, *this);
}

bool Adjustment::Says(const FieldChange& field) const {
  if (field.field == Field::kCpusetCpus && (values.cpus || clears_cpus())) return true;
  if (field.field == Field::kCpusetMems && (values.mems || clears_mems())) return true;
  if (field.field == Field::kCpuQuota && values.cpu_period) return true;
  const NumberField* const number = NumberFieldOf(field.field);
  if (number != nullptr && NumberIn(*this, *number)) return true;
  if (wide_ == nullptr) return false;
  if (field.field == Field::kHugepageLimits && wide_->hugepage_limits.Find(field.key) != nullptr) {
    return true;
  }
  return SetsFileOf(field, wide_->unified);
}

void Overlay(const Adjustment& so_far, CreateRequest& create) {
  OverlayResources(so_far, create.resources);
  if (so_far.wide() == nullptr) return;
  create.labels = Edited(create.labels, so_far.wide()->labels);
  create.annotations = Edited(create.annotations, so_far.wide()->annotations);
}

void Overlay(const Adjustment& so_far, ContainerDetails& details) {
  if (so_far.wide() != nullptr) OverlayDetails(*so_far.wide(), details);
}

std::shared_ptr<const ContainerDetails> Overlaid(const Adjustment& so_far,
                                                 std::shared_ptr<const ContainerDetails> details) {
  if (so_far.wide() == nullptr) return details;
  auto changed = std::make_shared<ContainerDetails>(*details);
  Overlay(so_far, *changed);
  return changed;
}

}  // namespace resmgr
