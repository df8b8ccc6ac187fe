// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/unified_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/model/resource_fields.h"

namespace resmgr {
namespace {

constexpr std::string_view kCpuset = "cpuset.";
constexpr std::string_view kCpusetCpus = "cpuset.cpus";
constexpr std::string_view kCpusetMems = "cpuset.mems";
constexpr std::string_view kCpuMax = "cpu.max";
constexpr std::string_view kCpuWeight = "cpu.weight";
constexpr std::string_view kCpuIdle = "cpu.idle";
constexpr std::string_view kMemoryMax = "memory.max";
constexpr std::string_view kHugetlb = "hugetlb.";
constexpr std::string_view kMax = ".max";
constexpr std::string_view kUnlimited = "max";

constexpr std::array<std::pair<std::string_view, Field>, 7> kFields = {{
    {kCpusetCpus, Field::kCpusetCpus},
    {kCpusetMems, Field::kCpusetMems},
    {kCpuMax, Field::kCpuQuota},
    {kCpuWeight, Field::kCpuShares},
    {"cpu.weight.nice", Field::kCpuShares},
    {kMemoryMax, Field::kMemoryLimit},
    {"memory.swap.max", Field::kMemorySwapLimit},
}};

// "2MB" for "hugetlb.2MB.max"; "": not such a file.
std::string_view PageSizeOf(std::string_view name) {
  if (!name.starts_with(kHugetlb) || !name.ends_with(kMax)) return "";
  name.remove_prefix(kHugetlb.size());
  if (name.size() <= kMax.size()) return "";
  name.remove_suffix(kMax.size());
  return name.find('.') == std::string_view::npos ? name : "";
}

// The limit as fields have it: "max" is -1.
std::optional<int64_t> LimitOf(std::string_view text) {
  if (text == kUnlimited) return -1;
  const auto number = ParseUint(text);
  if (!number || !std::in_range<int64_t>(*number)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// Adds quota and period from "50000 100000", "max" or "max 100000".
bool AddCpuMax(std::string_view value, ResourceValues& values) {
  const size_t space = value.find_first_of(" \t");
  const auto quota = LimitOf(value.substr(0, space));
  if (!quota || *quota == 0) return false;
  if (space != std::string_view::npos) {
    const auto period = ParseUint(Trim(value.substr(space)));
    if (!period || *period == 0 || !std::in_range<int64_t>(*period)) return false;
    values.cpu_period = static_cast<int64_t>(*period);
  }
  values.cpu_quota = quota;
  return true;
}

template <typename Set>
bool AddList(std::string_view value, std::optional<Set>& into) {
  auto list = Set::Parse(value);
  if (!list.ok() || list->empty()) return false;
  into = *std::move(list);
  return true;
}

}  // namespace

bool IsPlacementFile(std::string_view file) {
  return file.starts_with(kCpuset);
}

std::optional<FieldChange> FieldOfFile(std::string_view file, std::string_view value) {
  if (file == kCpuIdle) {
    if (Trim(value) == "0") return std::nullopt;
    return FieldChange{.field = Field::kCpuShares};
  }
  for (const auto& [known, field] : kFields)
    if (file == known) return FieldChange{.field = field};
  if (const std::string_view size = PageSizeOf(file); !size.empty()) {
    return FieldChange{.field = Field::kHugepageLimits, .key = std::string(size)};
  }
  return std::nullopt;
}

bool SetsFileOf(const FieldChange& field, const KeyedEdits<std::string>& unified) {
  const auto sets = [&unified, &field](std::string_view file) {
    const auto* const edit = unified.Find(file);
    return edit != nullptr && edit->value && FieldOfFile(file, *edit->value) == field;
  };
  if (field.field == Field::kHugepageLimits) return sets(FileOf(field));
  if (field.field == Field::kCpuShares && sets(kCpuIdle)) return true;
  return std::ranges::any_of(kFields, [&sets, &field](const auto& known) {
    return known.second == field.field && sets(known.first);
  });
}

bool AddAsField(std::string_view file, std::string_view value, Adjustment& adjustment) {
  const std::string_view text = Trim(value);
  if (file == kCpuMax) return AddCpuMax(text, adjustment.values);
  if (file == kCpusetCpus) return AddList(text, adjustment.values.cpus);
  if (file == kCpusetMems) return AddList(text, adjustment.values.mems);
  const std::string_view size = PageSizeOf(file);
  if (file != kMemoryMax && size.empty()) return false;
  const auto limit = LimitOf(text);
  // In fields 0 means no limit, and some runtimes refuse -1.
  if (!limit || *limit <= 0) return false;
  if (file == kMemoryMax) {
    adjustment.Wide().memory_limit = limit;
    return true;
  }
  adjustment.Wide().hugepage_limits.Set(size, static_cast<uint64_t>(*limit));
  return true;
}

FieldChange MeaningOf(const FieldChange& change) {
  if (change.field != Field::kUnified) return change;
  // The field of the file, whatever the file's value is.
  return FieldOfFile(change.key, "").value_or(change);
}

void Unset(const FieldChange& field, LinuxResources& resources) {
  if (field.field == Field::kCpusetCpus) resources.cpuset_cpus.reset();
  if (field.field == Field::kCpusetMems) resources.cpuset_mems.reset();
  if (field.field == Field::kCpuQuota) resources.cpu_period.reset();
  if (field.field == Field::kHugepageLimits) resources.hugepage_limits.erase(field.key);
  const NumberField* const number = NumberFieldOf(field.field);
  if (number != nullptr && number->requested != nullptr) (resources.*number->requested).reset();
}

std::string FileOf(const FieldChange& change) {
  switch (change.field) {
    case Field::kCpusetCpus:
      return std::string(kCpusetCpus);
    case Field::kCpusetMems:
      return std::string(kCpusetMems);
    case Field::kCpuQuota:
    case Field::kCpuPeriod:
      return std::string(kCpuMax);
    case Field::kMemoryLimit:
      return std::string(kMemoryMax);
    case Field::kHugepageLimits:
      return fmt::format("{}{}{}", kHugetlb, change.key, kMax);
    default:
      return "";
  }
}

}  // namespace resmgr
