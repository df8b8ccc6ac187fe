// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_rules.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "pkg/config/pod_annotation.h"
#include "pkg/kube/crio_annotations.h"
#include "pkg/kube/glob.h"
#include "pkg/model/requirements.h"

namespace resmgr {
namespace {

constexpr std::string_view kSystemNamespace = "kube-system";
constexpr std::string_view kPreferReserved = "prefer-reserved-cpus";

bool InReservedNamespace(const StaticPlusOptions& options, const Pod& pod) {
  if (pod.namespace_name == kSystemNamespace) return true;
  return std::ranges::any_of(options.reserved_pool_namespaces, [&pod](const std::string& pattern) {
    return MatchesGlob(pattern, pod.namespace_name);
  });
}

// The reason why the container belongs to the reserved pool; empty if it does not.
std::string WhyReserved(const StaticPlusOptions& options, const Pod& pod,
                        const Container& container) {
  const std::optional<bool> annotated =
      ReadBoolAnnotation(pod.annotations, kPreferReserved, container.name);
  if (annotated == false) return "";
  if (annotated == true && options.privileged.Include(pod)) {
    return fmt::format("annotation {}", kPreferReserved);
  }
  if (!InReservedNamespace(options, pod)) return "";
  return fmt::format("namespace {}", pod.namespace_name);
}

// The reason why the container gets no exclusive CPUs; empty if it gets the whole ones of its
// request.
std::string WhyShared(const StaticPlusOptions& options, const Pod& pod,
                      const Container& container) {
  const MilliCpu request = container.requirements.cpu_request;
  if (request.value <= 0) return "no CPU request";
  if (request.Whole() == 0) {
    return fmt::format("CPU request of {}m is less than one CPU", request.value);
  }
  const Requirements& needs = container.requirements;
  const bool as_kubelets = options.grant == StaticPlusOptions::Grant::kGuaranteed;
  if (needs.cpu_of_pod || (as_kubelets && pod.qos == QosClass::kGuaranteed)) {
    if (const std::string_view why = WhyCpuIsOfPod(needs); !why.empty()) return std::string(why);
  }
  const std::optional<bool> annotated =
      ReadBoolAnnotation(pod.annotations, "prefer-shared-cpus", container.name);
  if (annotated) return *annotated ? "annotation prefer-shared-cpus" : "";
  if (options.grant == StaticPlusOptions::Grant::kAnnotated) {
    return "no annotation asks for exclusive CPUs";
  }
  if (options.grant == StaticPlusOptions::Grant::kGuaranteed && pod.qos != QosClass::kGuaranteed) {
    return fmt::format("{} pod", ToString(pod.qos));
  }
  return "";
}

}  // namespace

std::string WhyNotHeeded(const StaticPlusOptions& options, const Pod& pod,
                         const Container& container) {
  const bool asks =
      ReadBoolAnnotation(pod.annotations, kPreferReserved, container.name).value_or(false);
  if (!asks || options.privileged.Include(pod) || InReservedNamespace(options, pod)) return "";
  return PrivilegedNamespaces::WhyIgnored(kPreferReserved, pod, "static-plus");
}

CpuClaim StaticPlusClaim(const StaticPlusOptions& options, bool has_reserved, const Pod& pod,
                         const Container& container) {
  CpuClaim claim;
  if (std::string why = WhyReserved(options, pod, container); !why.empty()) {
    claim.reserved = has_reserved;
    claim.why = has_reserved ? std::move(why) : fmt::format("{}, but no CPUs are reserved", why);
    return claim;
  }
  const std::string ignored = WhyNotHeeded(options, pod, container);
  const std::string note = ignored.empty() ? container.needs_note
                                           : fmt::format("{} ({})", container.needs_note, ignored);
  claim.why = WhyShared(options, pod, container);
  if (!claim.why.empty()) {
    claim.why += note;
    return claim;
  }

  const MilliCpu request = container.requirements.cpu_request;
  claim.exclusive = static_cast<int>(std::min<int64_t>(request.Whole(), CpuSet::kBits));
  // The need beyond the reported value is unknown, and is served from the shared CPUs.
  const bool more = MayAskForMore(container);
  const bool asks = WantsSharedCpus(pod.annotations, container.name);
  claim.shared = request.Fraction() > 0 || more || asks;
  claim.prefer_isolated =
      ReadBoolAnnotation(pod.annotations, "prefer-isolated-cpus", container.name);
  claim.require_isolated =
      ReadBoolAnnotation(pod.annotations, "require-isolated-cpus", container.name).value_or(false);
  const AnnotatedAlignment annotated = ReadAlignmentAnnotation(pod.annotations, container.name);
  claim.alignment = annotated.alignment.value_or(options.alignment);
  claim.why = fmt::format("CPU request of {}m", request.value);
  if (request.Fraction() > 0) claim.why += fmt::format(", {}m of it shared", request.Fraction());
  if (more) claim.why += kMayAskForMoreNote;
  if (asks) claim.why += kAndSharedNote;
  claim.why += annotated.Note();
  claim.why += note;
  return claim;
}

}  // namespace resmgr
