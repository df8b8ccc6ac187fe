// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/adjustment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

template <typename T>
void TakeIfSet(std::optional<T>& value, std::optional<T>&& later) {
  if (later) value = std::move(later);
}

template <typename T>
void Extend(std::vector<T>& list, std::vector<T>&& later) {
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
  TakeIfSet(base.memory_limit, std::move(later.memory_limit));
  TakeIfSet(base.memory_swap_limit, std::move(later.memory_swap_limit));
  TakeIfSet(base.oom_score_adj, std::move(later.oom_score_adj));
  base.hugepage_limits.Merge(std::move(later.hugepage_limits));
  base.unified.Merge(std::move(later.unified));
  TakeIfSet(base.blockio_class, std::move(later.blockio_class));
  TakeIfSet(base.rdt_class, std::move(later.rdt_class));
  base.environment.Merge(std::move(later.environment));
  TakeIfSet(base.args, std::move(later.args));
  base.mounts.Merge(std::move(later.mounts));
  base.devices.Merge(std::move(later.devices));
  Extend(base.cdi_devices, std::move(later.cdi_devices));
  base.labels.Merge(std::move(later.labels));
  base.annotations.Merge(std::move(later.annotations));
  TakeIfSet(base.cgroup_parent, std::move(later.cgroup_parent));
  base.resource_limits.Merge(std::move(later.resource_limits));
  Extend(base.hooks, std::move(later.hooks));
  TakeIfSet(base.seccomp_profile, std::move(later.seccomp_profile));
}

// Collects what is changed.
class ChangeList {
 public:
  template <typename T>
  void Add(Field field, const std::optional<T>& value) {
    if (value) changes_.push_back({.field = field});
  }
  template <typename T>
  void Add(Field field, const KeyedEdits<T>& edits) {
    for (const auto& edit : edits)
      changes_.push_back({.field = field, .key = edit.key});
  }
  void AddIf(bool changed, Field field) {
    if (changed) changes_.push_back({.field = field});
  }
  void Add(Field field, const std::string& key) {
    changes_.push_back({.field = field, .key = key});
  }
  std::vector<FieldChange> Take() { return std::move(changes_); }

 private:
  std::vector<FieldChange> changes_;
};

void AddWideChanges(const WideAdjustment& wide, ChangeList& changes) {
  changes.Add(Field::kMemoryLimit, wide.memory_limit);
  changes.Add(Field::kMemorySwapLimit, wide.memory_swap_limit);
  changes.Add(Field::kOomScoreAdj, wide.oom_score_adj);
  changes.Add(Field::kHugepageLimits, wide.hugepage_limits);
  changes.Add(Field::kUnified, wide.unified);
  changes.Add(Field::kBlockioClass, wide.blockio_class);
  changes.Add(Field::kRdtClass, wide.rdt_class);
  changes.Add(Field::kEnvironment, wide.environment);
  changes.Add(Field::kArgs, wide.args);
  changes.Add(Field::kMounts, wide.mounts);
  changes.Add(Field::kDevices, wide.devices);
  for (const std::string& name : wide.cdi_devices)
    changes.Add(Field::kCdiDevices, name);
  changes.Add(Field::kLabels, wide.labels);
  changes.Add(Field::kAnnotations, wide.annotations);
  changes.Add(Field::kCgroupParent, wide.cgroup_parent);
  changes.Add(Field::kResourceLimits, wide.resource_limits);
  for (const OciHook& hook : wide.hooks)
    changes.Add(Field::kHooks, hook.path);
  changes.Add(Field::kSeccompProfile, wide.seccomp_profile);
}

void Unset(const FieldChange& field, Adjustment& adjustment) {
  ResourceValues& values = adjustment.values;
  switch (field.field) {
    case Field::kCpusetCpus:
      return values.cpus.reset();
    case Field::kCpusetMems:
      return values.mems.reset();
    case Field::kCpuShares:
      return values.cpu_shares.reset();
    case Field::kCpuQuota:
      values.cpu_period.reset();
      return values.cpu_quota.reset();
    default:
      break;
  }
  if (adjustment.wide() == nullptr) return;
  WideAdjustment& wide = adjustment.Wide();
  if (field.field == Field::kMemoryLimit) wide.memory_limit.reset();
  if (field.field == Field::kMemorySwapLimit) wide.memory_swap_limit.reset();
  // The request's own goes, too.
  if (field.field == Field::kHugepageLimits) wide.hugepage_limits.Remove(field.key);
}

// Removes from `base` each value that `later` says in another way (field or file): runtimes would
// get both. A file of `base` is removed, so that the one of the request is, too.
void GiveWay(Adjustment& base, const Adjustment& later) {
  if (later.wide() != nullptr) {
    for (const auto& edit : later.wide()->unified) {
      if (!edit.value) continue;
      if (const auto field = FieldOfFile(edit.key, *edit.value)) Unset(*field, base);
    }
  }
  if (base.wide() == nullptr || base.wide()->unified.empty()) return;
  std::vector<std::string> over;
  for (const auto& edit : base.wide()->unified) {
    const auto field = edit.value ? FieldOfFile(edit.key, *edit.value) : std::nullopt;
    if (field && later.Says(*field)) over.push_back(edit.key);
  }
  for (const std::string& file : over)
    base.Wide().unified.Remove(file);
}

}  // namespace

bool IsKubeletsOwn(std::string_view key) {
  return key.starts_with("io.kubernetes.");
}

std::string_view ToString(Field field) {
  switch (field) {
    case Field::kCpusetCpus:
      return "cpuset_cpus";
    case Field::kCpusetMems:
      return "cpuset_mems";
    case Field::kCpuShares:
      return "cpu_shares";
    case Field::kCpuQuota:
      return "cpu_quota";
    case Field::kCpuPeriod:
      return "cpu_period";
    case Field::kMemoryLimit:
      return "memory_limit";
    case Field::kMemorySwapLimit:
      return "memory_swap_limit";
    case Field::kOomScoreAdj:
      return "oom_score_adj";
    case Field::kHugepageLimits:
      return "hugepage_limits";
    case Field::kUnified:
      return "unified";
    case Field::kBlockioClass:
      return "blockio_class";
    case Field::kRdtClass:
      return "rdt_class";
    case Field::kEnvironment:
      return "environment";
    case Field::kArgs:
      return "args";
    case Field::kMounts:
      return "mounts";
    case Field::kDevices:
      return "devices";
    case Field::kCdiDevices:
      return "cdi_devices";
    case Field::kLabels:
      return "labels";
    case Field::kAnnotations:
      return "annotations";
    case Field::kCgroupParent:
      return "cgroup_parent";
    case Field::kResourceLimits:
      return "resource_limits";
    case Field::kHooks:
      return "hooks";
    case Field::kSeccompProfile:
      return "seccomp_profile";
  }
  return "";
}

std::vector<FieldChange> Adjustment::Changes() const {
  ChangeList changes;
  changes.AddIf(values.cpus || clears_cpus(), Field::kCpusetCpus);
  changes.AddIf(values.mems || clears_mems(), Field::kCpusetMems);
  changes.Add(Field::kCpuShares, values.cpu_shares);
  changes.Add(Field::kCpuQuota, values.cpu_quota);
  changes.Add(Field::kCpuPeriod, values.cpu_period);
  if (wide_ != nullptr) AddWideChanges(*wide_, changes);
  return changes.Take();
}

void Adjustment::Merge(Adjustment&& later) {
  GiveWay(*this, later);
  const bool later_clears_cpus = later.clears_cpus();
  const bool later_clears_mems = later.clears_mems();
  MergeSet(values.cpus, std::move(later.values.cpus), later_clears_cpus);
  MergeSet(values.mems, std::move(later.values.mems), later_clears_mems);
  TakeIfSet(values.cpu_shares, std::move(later.values.cpu_shares));
  TakeIfSet(values.cpu_quota, std::move(later.values.cpu_quota));
  TakeIfSet(values.cpu_period, std::move(later.values.cpu_period));
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
  if (wide_ == nullptr || wide_->unified.empty()) return;
  for (const auto& edit : wide_->unified) {
    if (!edit.value) continue;
    if (const auto field = FieldOfFile(edit.key, *edit.value)) Unset(*field, *this);
  }
}

bool Adjustment::Says(const FieldChange& field) const {
  switch (field.field) {
    case Field::kCpusetCpus:
      if (values.cpus || clears_cpus()) return true;
      break;
    case Field::kCpusetMems:
      if (values.mems || clears_mems()) return true;
      break;
    case Field::kCpuShares:
      if (values.cpu_shares) return true;
      break;
    case Field::kCpuQuota:
      if (values.cpu_quota || values.cpu_period) return true;
      break;
    default:
      break;
  }
  if (wide_ == nullptr) return false;
  if (field.field == Field::kMemoryLimit && wide_->memory_limit) return true;
  if (field.field == Field::kMemorySwapLimit && wide_->memory_swap_limit) return true;
  if (field.field == Field::kHugepageLimits && wide_->hugepage_limits.Find(field.key) != nullptr) {
    return true;
  }
  return SetsFileOf(field, wide_->unified);
}

}  // namespace resmgr
