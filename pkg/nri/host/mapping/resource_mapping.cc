// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/resource_mapping.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/model/unified_files.h"
#include "pkg/nri/convert.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {
namespace {

constexpr size_t kShownKey = 128;
constexpr std::string_view kMemoryLow = "memory.low";
constexpr std::string_view kPidsMax = "pids.max";
constexpr std::string_view kUnlimited = "max";

// The cgroup v2 files for values without a field in the CRI.
std::vector<std::pair<std::string_view, std::string>> FilesFor(const api::LinuxResources& resources,
                                                               const RuntimeTraits& traits) {
  std::vector<std::pair<std::string_view, std::string>> files;
  if (!traits.cgroup_v2) return files;
  const auto add = [&](std::string_view file, int64_t value) {
    if (resources.unified().contains(std::string(file))) return;
    files.emplace_back(file, value < 0 ? std::string(kUnlimited) : std::to_string(value));
  };
  const api::LinuxMemory& memory = resources.memory();
  if (memory.has_reservation()) add(kMemoryLow, memory.reservation().value());
  // 0 means unset (OCI runtimes).
  if (resources.pids().limit() != 0) add(kPidsMax, resources.pids().limit());
  return files;
}

template <typename Set>
Status ReadList(const std::string& text, std::string_view what, std::optional<Set>& set) {
  if (text.empty()) return OkStatus();
  auto parsed = Set::Parse(text);
  if (!parsed.ok()) return Annotate(parsed.status(), what);
  if (parsed->empty()) return InvalidArgument("{}: the list is empty", what);
  set = *std::move(parsed);
  return OkStatus();
}

Status ReadCpu(const api::LinuxResources& resources, ResourceValues& values) {
  RESMGR_RETURN_IF_ERROR(ReadList(resources.cpu().cpus(), "cpus", values.cpus));
  RESMGR_RETURN_IF_ERROR(ReadList(resources.cpu().mems(), "mems", values.mems));
  RESMGR_RETURN_IF_ERROR(CheckNumbers(resources));
  for (const NriNumber& number : kNriNumbers) {
    if (number.row().decided()) values.*number.row().value = number.get(resources);
  }
  return OkStatus();
}

// Writes the file's value into the field of the same meaning, or unsets the field. False: the file
// must be sent.
bool SetField(std::string_view file, std::string_view value, ResourceChange& change) {
  Adjustment field;
  if (AddAsField(file, value, field)) {
    Merge(change.resources, AsResources(field.values));
    if (field.wide() == nullptr) return true;
    if (field.wide()->memory_limit) change.resources.memory_limit = field.wide()->memory_limit;
    for (const auto& [size, limit] : field.wide()->hugepage_limits)
      change.resources.hugepage_limits[size] = limit.value_or(0);
    return true;
  }
  const auto said = FieldOfFile(file, value);
  if (!said) return false;
  Unset(*said, change.resources);
  if (said->field == Field::kMemorySwapLimit) change.memory_swap_limit.reset();
  return false;
}

class ShortfallList {
 public:
  explicit ShortfallList(const RuntimeTraits& traits) : traits_(traits) {}

  void AddIf(bool wanted, api::Field field) {
    if (wanted) list_.push_back({.field = field, .why = WhyNotWritten(traits_, field)});
  }
  // `why` follows the name of the API.
  void AddIf(bool wanted, api::Field field, std::string_view why) {
    if (!wanted) return;
    list_.push_back({.field = field, .why = fmt::format("{} {}", traits_.api_name, why)});
  }
  std::vector<Shortfall> Take() { return std::move(list_); }

 private:
  const RuntimeTraits& traits_;
  std::vector<Shortfall> list_;
};

// Fields whose loss refuses the creation by default: without them a container may not work, or may
// be less secure than intended.
constexpr std::array kRefused{
    api::FIELD_MOUNTS,
    api::FIELD_OCI_HOOKS,
    api::FIELD_DEVICES,
    api::FIELD_CDI_DEVICES,
    api::FIELD_ARGS,
    api::FIELD_CGROUPS_PATH,
    api::FIELD_RLIMITS,
    api::FIELD_SECCOMP_POLICY,
    api::FIELD_NAMESPACE,
    api::FIELD_SYSCTL,
    api::FIELD_LINUX_NET_DEVICES,
};

}  // namespace

Status CheckNumbers(const api::LinuxResources& resources) {
  for (const NriNumber& number : kNriNumbers) {
    const auto value = number.get(resources);
    if (number.is_unsigned && value.value_or(0) < 0) {
      return InvalidArgument("{}: {} is too large", number.text, static_cast<uint64_t>(*value));
    }
  }
  return OkStatus();
}

ResourceChange ToResourceChange(const api::LinuxResources& resources, const RuntimeTraits& traits) {
  ResourceChange change;
  change.resources = ToResources(resources);
  // A negative limit is left out, since some runtimes refuse it.
  if (change.resources.memory_limit < 0) change.resources.memory_limit.reset();
  const api::LinuxMemory& memory = resources.memory();
  if (memory.swap().value() > 0) change.memory_swap_limit = memory.swap().value();
  const auto files = FilesFor(resources, traits);
  std::vector<StringMap::value_type> unified;
  for (const auto& [file, value] : resources.unified())
    if (!SetField(file, value, change)) unified.emplace_back(file, value);
  for (const auto& [file, value] : files)
    unified.emplace_back(file, value);
  if (!unified.empty()) change.unified = StringMap(std::span(unified));
  return change;
}

Status MapResources(const api::LinuxResources& resources, const RuntimeTraits& traits,
                    Adjustment& adjustment) {
  RESMGR_RETURN_IF_ERROR(ReadCpu(resources, adjustment.values));
  const api::LinuxMemory& memory = resources.memory();
  const auto files = FilesFor(resources, traits);
  const bool nothing_else = !memory.has_limit() && !memory.has_swap() && files.empty() &&
                            resources.hugepage_limits().empty() && resources.unified().empty() &&
                            !resources.has_blockio_class() && !resources.has_rdt_class();
  if (nothing_else) return OkStatus();
  WideAdjustment& wide = adjustment.Wide();
  // In the CRI 0 means no limit.
  for (const NriNumber& number : kNriNumbers) {
    if (number.row().decided()) continue;
    const auto value = number.get(resources);
    if (value) wide.*number.row().changed = std::max<int64_t>(*value, 0);
  }
  for (const api::HugepageLimit& limit : resources.hugepage_limits())
    wide.hugepage_limits.Set(limit.page_size(), limit.limit());
  for (const auto& [file, value] : resources.unified())
    wide.unified.Set(file, value);
  for (const auto& [file, value] : files)
    wide.unified.Set(file, value);
  if (resources.has_blockio_class()) wide.blockio_class = resources.blockio_class().value();
  if (resources.has_rdt_class()) wide.rdt_class = resources.rdt_class().value();
  return OkStatus();
}

bool LeaveOutPlacement(api::LinuxResources& resources) {
  bool said = !resources.cpu().cpus().empty() || !resources.cpu().mems().empty();
  if (said) {
    resources.mutable_cpu()->clear_cpus();
    resources.mutable_cpu()->clear_mems();
  }
  std::vector<std::string> files;
  for (const auto& [file, value] : resources.unified())
    if (IsPlacementFile(file)) files.push_back(file);
  for (const std::string& file : files)
    resources.mutable_unified()->erase(file);
  return said || !files.empty();
}

std::string Shown(const Shortfall& shortfall) {
  std::string text = shortfall.field == api::FIELD_NONE ? "rules for devices"
                                                        : std::string(FieldName(shortfall.field));
  if (!shortfall.key.empty()) text.append(" ").append(Printable(shortfall.key, kShownKey));
  return text;
}

std::vector<Shortfall> ShortfallsOf(const api::LinuxResources& resources,
                                    const RuntimeTraits& traits, bool update) {
  constexpr std::string_view kOnlyV2 = "has it on cgroup v2 only";
  constexpr std::string_view kOnlyNew = "cannot change it of a container that exists";
  constexpr std::string_view kNotLifted = "cannot lift it from a container that exists";
  ShortfallList list(traits);
  const api::LinuxMemory& memory = resources.memory();
  const api::LinuxCPU& cpu = resources.cpu();
  list.AddIf(memory.limit().value() < 0 && update, api::FIELD_MEM_LIMIT, kNotLifted);
  list.AddIf(memory.swap().value() < 0 && update, api::FIELD_MEM_SWAP_LIMIT, kNotLifted);
  list.AddIf(memory.has_reservation() && !traits.cgroup_v2, api::FIELD_MEM_RESERVATION, kOnlyV2);
  list.AddIf(memory.has_kernel(), api::FIELD_MEM_KERNEL_LIMIT);
  list.AddIf(memory.has_kernel_tcp(), api::FIELD_MEM_TCPLIMIT);
  list.AddIf(memory.has_swappiness(), api::FIELD_MEM_SWAPPINESS);
  list.AddIf(memory.has_disable_oom_killer(), api::FIELD_MEM_DISABLE_OOM_KILLER);
  list.AddIf(memory.has_use_hierarchy(), api::FIELD_MEM_USE_HIERARCHY);
  list.AddIf(cpu.has_realtime_runtime(), api::FIELD_CPUREALTIME_RUNTIME);
  list.AddIf(cpu.has_realtime_period(), api::FIELD_CPUREALTIME_PERIOD);
  list.AddIf(resources.pids().limit() != 0 && !traits.cgroup_v2, api::FIELD_PIDS_LIMIT, kOnlyV2);
  list.AddIf(resources.has_blockio_class() && update, api::FIELD_BLOCKIO_CLASS, kOnlyNew);
  list.AddIf(resources.has_rdt_class() && update, api::FIELD_RDT_CLASS, kOnlyNew);
  list.AddIf(!resources.devices().empty(), api::FIELD_NONE);
  return list.Take();
}

// A removal that is impossible is ignored by default: the entry is one that every container has, or
// comes from the image.
UnsupportedPolicy::UnsupportedPolicy() {
  additions_.fill(FailurePolicy::kIgnore);
  removals_.fill(FailurePolicy::kIgnore);
  for (const api::Field field : kRefused)
    additions_.at(static_cast<size_t>(field)) = FailurePolicy::kFail;
}

FailurePolicy UnsupportedPolicy::Of(const Shortfall& shortfall) const {
  return (shortfall.removal ? removals_ : additions_).at(static_cast<size_t>(shortfall.field));
}

void UnsupportedPolicy::Set(api::Field field, FailurePolicy policy) {
  additions_.at(static_cast<size_t>(field)) = policy;
  removals_.at(static_cast<size_t>(field)) = policy;
}

}  // namespace resmgr::nri
