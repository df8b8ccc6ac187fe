// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/change_owners.h"

#include <algorithm>
#include <string_view>
#include <utility>

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

// The fields besides those of kNriNumbers that plugins can change.
constexpr std::pair<Field, api::Field> kFields[] = {
    {Field::kCpusetCpus, api::FIELD_CPUSET_CPUS},
    {Field::kCpusetMems, api::FIELD_CPUSET_MEMS},
    {Field::kOomScoreAdj, api::FIELD_OOM_SCORE_ADJ},
    {Field::kHugepageLimits, api::FIELD_HUGEPAGE_LIMITS},
    {Field::kUnified, api::FIELD_CGROUPS_UNIFIED},
    {Field::kBlockioClass, api::FIELD_BLOCKIO_CLASS},
    {Field::kRdtClass, api::FIELD_RDT_CLASS},
    {Field::kEnvironment, api::FIELD_ENV},
    {Field::kArgs, api::FIELD_ARGS},
    {Field::kMounts, api::FIELD_MOUNTS},
    {Field::kDevices, api::FIELD_DEVICES},
    {Field::kCdiDevices, api::FIELD_CDI_DEVICES},
    {Field::kAnnotations, api::FIELD_ANNOTATIONS},
    {Field::kResourceLimits, api::FIELD_RLIMITS},
    {Field::kHooks, api::FIELD_OCI_HOOKS},
    {Field::kSeccompProfile, api::FIELD_SECCOMP_POLICY},
};

api::Field FieldOf(Field field) {
  const auto* const number = std::ranges::find(kNriNumbers, field, &NriNumber::field);
  if (number != kNriNumbers.end()) return number->nri_field;
  const auto* const other = std::ranges::find(kFields, field, &std::pair<Field, api::Field>::first);
  return other == std::end(kFields) ? api::FIELD_NONE : other->second;
}

}  // namespace

std::string PluginBehind(std::span<const OwnedField> owned, const FieldChange& change) {
  const auto look = [owned](api::Field field, std::string_view key) -> std::string {
    // A plugin may set a hundred thousand variables, each of which is looked up.
    const std::pair wanted(field, key);
    const auto place = [](const OwnedField& each) {
      return std::pair(each.field, std::string_view(each.key));
    };
    const auto found = std::ranges::lower_bound(owned, wanted, {}, place);
    return found == owned.end() || place(*found) != wanted ? "" : found->plugin;
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
