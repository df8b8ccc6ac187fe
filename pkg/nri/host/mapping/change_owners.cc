// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/change_owners.h"

#include <algorithm>
#include <string_view>

#include "pkg/model/unified_files.h"
#include "pkg/nri/convert.h"

namespace resmgr::nri {

namespace {

// The NRI field that may have been set instead of a cgroup v2 file.
api::Field FieldBehind(std::string_view file) {
  if (file == "memory.low") return api::FIELD_MEM_RESERVATION;
  if (file == "pids.max") return api::FIELD_PIDS_LIMIT;
  return api::FIELD_NONE;
}

api::Field FieldOf(Field field) {
  const auto* const number = std::ranges::find(kNriNumbers, field, &NriNumber::field);
  if (number != kNriNumbers.end()) return number->nri_field;
  switch (field) {
    case Field::kCpusetCpus:
      return api::FIELD_CPUSET_CPUS;
    case Field::kCpusetMems:
      return api::FIELD_CPUSET_MEMS;
    case Field::kOomScoreAdj:
      return api::FIELD_OOM_SCORE_ADJ;
    case Field::kHugepageLimits:
      return api::FIELD_HUGEPAGE_LIMITS;
    case Field::kUnified:
      return api::FIELD_CGROUPS_UNIFIED;
    case Field::kBlockioClass:
      return api::FIELD_BLOCKIO_CLASS;
    case Field::kRdtClass:
      return api::FIELD_RDT_CLASS;
    case Field::kEnvironment:
      return api::FIELD_ENV;
    case Field::kArgs:
      return api::FIELD_ARGS;
    case Field::kMounts:
      return api::FIELD_MOUNTS;
    case Field::kDevices:
      return api::FIELD_DEVICES;
    case Field::kCdiDevices:
      return api::FIELD_CDI_DEVICES;
    case Field::kAnnotations:
      return api::FIELD_ANNOTATIONS;
    case Field::kResourceLimits:
      return api::FIELD_RLIMITS;
    case Field::kHooks:
      return api::FIELD_OCI_HOOKS;
    case Field::kSeccompProfile:
      return api::FIELD_SECCOMP_POLICY;
    default:
      break;  // plugins cannot change it
  }
  return api::FIELD_NONE;
}

}  // namespace

ChangeOwners::ChangeOwners(std::span<const OwnedField> owned) {
  for (const OwnedField& field : owned)
    plugins_.emplace(std::pair(field.field, field.key), field.plugin);
}

std::string ChangeOwners::PluginOf(const FieldChange& change) const {
  const auto look = [this](api::Field field, const std::string& key) -> std::string {
    const auto found = plugins_.find(std::pair(field, key));
    return found == plugins_.end() ? "" : found->second;
  };
  // The field may have been set by a file in `unified`.
  if (const std::string file = FileOf(change); !file.empty()) {
    std::string plugin = look(api::FIELD_CGROUPS_UNIFIED, file);
    if (!plugin.empty()) return plugin;
  }
  const api::Field field = FieldOf(change.field);
  // Hooks add up, so all plugins that set hooks own them together.
  std::string plugin = look(field, IsKeyed(field) ? change.key : "");
  if (!plugin.empty()) return plugin;
  if (change.field == Field::kUnified) return look(FieldBehind(change.key), "");
  // The class may be a closid's name (NRI 0.11).
  if (change.field == Field::kRdtClass) return look(api::FIELD_RDT_CLOS_ID, "");
  return plugin;
}

}  // namespace resmgr::nri
