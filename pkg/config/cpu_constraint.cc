// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_constraint.h"

#include <algorithm>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/kube/quantity.h"

namespace resmgr {

namespace {

constexpr std::string_view kCpusetPrefix = "cpuset:";
constexpr std::string_view kExcludePrefix = "exclude-cpuset:";
constexpr std::string_view kCgroupPrefix = "cgroup:";
constexpr std::string_view kQuantityPrefix = "quantity:";
constexpr std::string_view kCpuDomain = "CPU";

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text = Trim(text.substr(prefix.size()));
  return true;
}

Status ReadSet(std::string_view list, CpuConstraint& constraint,
               CpuConstraint::Kind kind = CpuConstraint::Kind::kSet) {
  constraint.kind = kind;
  RESMGR_ASSIGN_OR_RETURN(constraint.cpus, CpuSet::Parse(list));
  if (constraint.cpus.empty()) return InvalidArgument("the list of CPUs is empty");
  return OkStatus();
}

Status ReadCgroup(std::string_view directory, CpuConstraint& constraint) {
  constraint.kind = CpuConstraint::Kind::kCgroup;
  constraint.cgroup = directory;
  return directory.empty() ? InvalidArgument("the name of the cgroup is empty") : OkStatus();
}

Status ReadQuantity(std::string_view quantity, CpuConstraint& constraint) {
  constraint.kind = CpuConstraint::Kind::kQuantity;
  RESMGR_ASSIGN_OR_RETURN(constraint.quantity, ParseMilliCpu(quantity));
  if (constraint.quantity.value == 0) return InvalidArgument("must be more than 0 CPUs");
  return OkStatus();
}

// Whether the text is to be a list of CPUs, and no quantity, whose exponent may be negative (1e-1).
bool IsList(std::string_view text) {
  if (text.find_first_of("-,") == std::string_view::npos) return false;
  return text.find(',') != std::string_view::npos || !ParseMilliCpu(text).ok();
}

Status Read(std::string_view text, CpuConstraint& constraint) {
  if (text.empty()) {
    return InvalidArgument(
        "is empty; write CPUs (0-3,8), a number of them (2, 750m) or cgroup:DIR");
  }
  if (TakePrefix(text, kCpusetPrefix) || TakePrefix(text, "#")) return ReadSet(text, constraint);
  if (TakePrefix(text, kExcludePrefix)) {
    return ReadSet(text, constraint, CpuConstraint::Kind::kAllBut);
  }
  if (TakePrefix(text, kCgroupPrefix) || text[0] == '/') return ReadCgroup(text, constraint);
  if (TakePrefix(text, kQuantityPrefix)) return ReadQuantity(text, constraint);
  if (IsList(text)) return ReadSet(text, constraint);
  return ReadQuantity(text, constraint);
}

bool IsDomain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

StatusOr<CpuConstraint> ParseCpuConstraint(std::string_view text, std::string_view origin) {
  CpuConstraint constraint;
  constraint.origin = origin;
  RESMGR_RETURN_IF_ERROR(Read(Trim(text), constraint));
  return constraint;
}

std::string ToString(const CpuConstraint& constraint) {
  switch (constraint.kind) {
    case CpuConstraint::Kind::kSet:
      return fmt::format("{}{}", kCpusetPrefix, constraint.cpus.ToString());
    case CpuConstraint::Kind::kAllBut:
      return fmt::format("{}{}", kExcludePrefix, constraint.cpus.ToString());
    case CpuConstraint::Kind::kCgroup:
      return fmt::format("{}{}", kCgroupPrefix, constraint.cgroup);
    case CpuConstraint::Kind::kQuantity:
      break;
  }
  return FormatMilliCpu(constraint.quantity);
}

StatusOr<std::string> CpuOfResources(std::string_view text) {
  std::optional<std::string> cpu;
  for (const std::string_view piece : Split(text, ',')) {
    const size_t equals = piece.find('=');
    const std::string_view domain =
        equals == std::string_view::npos ? "" : Trim(piece.substr(0, equals));
    if (!IsDomain(domain)) {
      if (!cpu) {
        return InvalidArgument("\"{}\" is not DOMAIN=VALUE; write CPU={}", Printable(text, 64),
                               IsDomain(Trim(text)) ? "VALUE" : Printable(text, 64));
      }
      cpu->append(",").append(piece);
      continue;
    }
    if (!EqualsIgnoreCase(domain, kCpuDomain)) {
      return InvalidArgument("the resource \"{}\" is not known; only CPU is",
                             Printable(domain, 64));
    }
    if (cpu) return InvalidArgument("duplicate key CPU");
    cpu = piece.substr(equals + 1);
  }
  return *cpu;
}

}  // namespace resmgr
