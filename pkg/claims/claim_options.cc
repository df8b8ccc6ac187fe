// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_options.h"

#include <vector>

#include <fmt/ranges.h>

namespace resmgr {
namespace {

// The key of an annotation for all containers of the pod.
std::string ForThePod(std::string_view key) {
  return fmt::format("{}.cri-resource-manager.intel.com/pod", key);
}

// The value of the annotation prefer-cpu-priority that makes a policy prefer cores of this kind.
std::string_view PriorityFor(CoreKind kind) {
  if (kind == CoreKind::kPerformance) return "high";
  return kind == CoreKind::kEfficient ? "low" : "normal";
}

}  // namespace

std::string_view CoreTypeName(CoreKind kind) {
  if (kind == CoreKind::kPerformance) return "p-core";
  return kind == CoreKind::kEfficient ? "e-core" : "standard";
}

std::optional<CoreKind> ParseCoreType(std::string_view name) {
  for (const CoreKind kind : {CoreKind::kNormal, CoreKind::kPerformance, CoreKind::kEfficient}) {
    const bool is_balloon_name = kind != CoreKind::kNormal && name == ToString(kind);
    if (name == CoreTypeName(kind) || is_balloon_name) return kind;
  }
  return std::nullopt;
}

StringMap AnnotationsFor(const ClaimOptions& options) {
  // A claim gets exclusive CPUs even if the policy would place the pods of its namespace on the
  // reserved CPUs, or gives exclusive CPUs only to pods that ask for them by annotation.
  StringMap annotations{{ForThePod("prefer-reserved-cpus"), "false"},
                        {ForThePod("prefer-shared-cpus"), "false"}};
  if (options.core_type)
    annotations.Set(ForThePod("prefer-cpu-priority"), PriorityFor(*options.core_type));
  if (options.l3) annotations.Set(ForThePod("alignment"), "l3");
  if (options.avoid_siblings) annotations.Set(ForThePod("hide-hyperthreads"), "true");
  return annotations;
}

std::string DescribeOptions(const ClaimOptions& options) {
  std::vector<std::string> names;
  if (options.core_type)
    names.push_back(fmt::format("coreType {}", CoreTypeName(*options.core_type)));
  if (options.whole_cores) names.emplace_back("wholeCores");
  if (options.l3) names.emplace_back("l3");
  if (options.avoid_siblings) names.emplace_back("avoidSiblings");
  return names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", "));
}

}  // namespace resmgr
