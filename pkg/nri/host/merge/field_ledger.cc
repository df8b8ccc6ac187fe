// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/field_ledger.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "pkg/base/parse.h"

namespace resmgr::nri {
namespace {

// Indexed by number (NRI 0.12: enum Field).
constexpr std::array<std::string_view, 41> kNames{
    "None",
    "Annotations",
    "Mounts",
    "OciHooks",
    "Devices",
    "CdiDevices",
    "Env",
    "Args",
    "MemLimit",
    "MemReservation",
    "MemSwapLimit",
    "MemKernelLimit",
    "MemTCPLimit",
    "MemSwappiness",
    "MemDisableOomKiller",
    "MemUseHierarchy",
    "CPUShares",
    "CPUQuota",
    "CPUPeriod",
    "CPURealtimeRuntime",
    "CPURealtimePeriod",
    "CPUSetCPUs",
    "CPUSetMems",
    "PidsLimit",
    "HugepageLimits",
    "BlockioClass",
    "RdtClass",
    "CgroupsUnified",
    "CgroupsPath",
    "OomScoreAdj",
    "Rlimits",
    "IoPriority",
    "SeccompPolicy",
    "Namespace",
    "Sysctl",
    "LinuxNetDevices",
    "LinuxSched",
    "RdtClosID",
    "RdtSchemata",
    "RdtEnableMonitoring",
    "MemoryPolicy",
};
static_assert(kNames.size() == api::Field_ARRAYSIZE);

// Bytes of container and field in front of the key, so that one string is the key of the map.
constexpr size_t kPrefix = sizeof(uint32_t) + 1;

std::string SlotOf(uint32_t container, api::Field field, std::string_view key) {
  std::string slot(kPrefix, '\0');
  std::memcpy(slot.data(), &container, sizeof container);
  slot[sizeof container] = static_cast<char>(field);
  slot += key;
  return slot;
}

uint32_t ContainerIn(std::string_view slot) {
  uint32_t container = 0;
  std::memcpy(&container, slot.data(), sizeof container);
  return container;
}

api::Field FieldIn(std::string_view slot) {
  return static_cast<api::Field>(slot[sizeof(uint32_t)]);
}

std::string_view KeyIn(std::string_view slot) {
  return slot.substr(kPrefix);
}

uint32_t IndexOf(std::string_view name, std::vector<std::string>& names, auto& indices) {
  if (const auto found = indices.find(name); found != indices.end()) return found->second;
  const auto index = static_cast<uint32_t>(names.size());
  names.emplace_back(name);
  indices.emplace(name, index);
  return index;
}

}  // namespace

std::string_view FieldName(api::Field field) {
  const auto number = static_cast<size_t>(field);
  return number < kNames.size() ? kNames[number] : std::string_view();
}

bool IsKeyed(api::Field field) {
  constexpr std::array kKeyed{api::FIELD_ANNOTATIONS,
                              api::FIELD_MOUNTS,
                              api::FIELD_DEVICES,
                              api::FIELD_CDI_DEVICES,
                              api::FIELD_ENV,
                              api::FIELD_HUGEPAGE_LIMITS,
                              api::FIELD_CGROUPS_UNIFIED,
                              api::FIELD_RLIMITS,
                              api::FIELD_NAMESPACE,
                              api::FIELD_SYSCTL,
                              api::FIELD_LINUX_NET_DEVICES};
  return std::ranges::find(kKeyed, field) != kKeyed.end();
}

Status FieldLedger::Claimant::Claim(api::Field field, std::string_view key) const {
  const Owner owner{plugin_, false};
  const auto [entry, is_new] = ledger_.owners_.try_emplace(SlotOf(container_, field, key), owner);
  if (is_new) {
    ledger_.undo_.emplace_back(&*entry, std::nullopt);
    return OkStatus();
  }
  Owner& before = entry->second;
  if (!before.removed || before.plugin != plugin_) {
    return FailedPrecondition("plugins \"{}\" and \"{}\" both tried to set {}{}{}",
                              Printable(plugin()), Printable(ledger_.names_[before.plugin]),
                              FieldName(field), key.empty() ? "" : " ", Printable(key));
  }
  ledger_.undo_.emplace_back(&*entry, before);
  before = owner;
  return OkStatus();
}

void FieldLedger::Claimant::Clear(api::Field field, std::string_view key) const {
  ledger_.Set(SlotOf(container_, field, key), Owner{plugin_, true});
}

void FieldLedger::Claimant::Join(api::Field field) const {
  const std::string slot = SlotOf(container_, field, {});
  const auto found = ledger_.owners_.find(slot);
  uint32_t name = plugin_;
  if (found != ledger_.owners_.end()) {
    name = ledger_.NameOf(ledger_.names_[found->second.plugin] + "," + plugin());
  }
  ledger_.Set(slot, Owner{name, false});
}

FieldLedger::Claimant FieldLedger::For(std::string_view container, std::string_view plugin) {
  return {*this, IndexOf(container, containers_, container_indices_), NameOf(plugin)};
}

uint32_t FieldLedger::NameOf(std::string_view name) {
  return IndexOf(name, names_, name_indices_);
}

void FieldLedger::Set(const std::string& slot, Owner owner) {
  const auto [entry, is_new] = owners_.try_emplace(slot, owner);
  undo_.emplace_back(&*entry, is_new ? std::nullopt : std::optional(entry->second));
  entry->second = owner;
}

void FieldLedger::UndoTo(Mark mark) {
  while (undo_.size() > mark) {
    const auto& [changed, before] = undo_.back();
    const auto entry = owners_.find(changed->first);
    if (before) {
      entry->second = *before;
    } else {
      owners_.erase(entry);
    }
    undo_.pop_back();
  }
}

api::OwningPlugins FieldLedger::Report() const {
  api::OwningPlugins report;
  for (const auto& [slot, owner] : owners_) {
    const api::Field field = FieldIn(slot);
    api::FieldOwners& of = (*report.mutable_owners())[containers_[ContainerIn(slot)]];
    const std::string name = (owner.removed ? "-" : "") + names_[owner.plugin];
    if (IsKeyed(field)) {
      api::CompoundFieldOwners& keyed = (*of.mutable_compound())[field];
      (*keyed.mutable_owners())[std::string(KeyIn(slot))] = name;
    } else {
      (*of.mutable_simple())[field] = name;
    }
  }
  return report;
}

std::vector<OwnedField> FieldLedger::Of(std::string_view container) const {
  std::vector<OwnedField> owned;
  const auto index = container_indices_.find(container);
  if (index == container_indices_.end()) return owned;
  for (const auto& [slot, owner] : owners_) {
    if (ContainerIn(slot) != index->second) continue;
    owned.push_back({.field = FieldIn(slot),
                     .key = std::string(KeyIn(slot)),
                     .plugin = names_[owner.plugin],
                     .removed = owner.removed});
  }
  std::ranges::sort(owned, {},
                    [](const OwnedField& field) { return std::tie(field.field, field.key); });
  return owned;
}

}  // namespace resmgr::nri
