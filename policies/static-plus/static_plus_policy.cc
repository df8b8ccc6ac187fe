// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_policy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/allocator/exclusive_picker.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"
#include "pkg/config/config_section.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"
#include "pkg/model/requirements.h"
#include "pkg/policy/privileged_namespaces.h"
#include "policies/exclusive/exclusive_policy.h"

namespace resmgr {
namespace {

// The section policy.static-plus; README.md beside this file explains each option.
struct StaticPlusOptions {
  // The containers that get the whole CPUs of their request exclusively if they have no annotation
  // about it.
  enum class Grant { kAlways, kGuaranteed, kAnnotated };
  Grant grant = Grant::kAlways;
  // Patterns with * and ?, in addition to "kube-system".
  std::vector<std::string> reserved_pool_namespaces{};
  PrivilegedNamespaces privileged{};
  ExclusiveOptions exclusive = {.prefer_isolated = true};
  Alignment alignment = Alignment::kPrefer;
  IsolationConfig undisturbed{};  // applied by pkg/classes
};

void Describe(ConfigSection& section, StaticPlusOptions& options) {
  using enum StaticPlusOptions::Grant;
  section.Map("Options",
              [&](ConfigSection& map) { DescribeExclusiveOptions(map, options.exclusive); });
  DescribeAlignment(section, options.alignment);
  DescribeUndisturbed(section, options.undisturbed);
  section.Bool(
      "PreferIsolatedCPUs", options.exclusive.prefer_isolated,
      "isolated CPUs before ordinary CPUs; `false`: only for one CPU or one full core, and "
      "by annotation");
  section.Choice("ExclusiveCPUs",
                 {{"always", kAlways}, {"guaranteed", kGuaranteed}, {"annotated", kAnnotated}},
                 options.grant,
                 "the containers that get the whole CPUs of their request exclusively: rule 4");
  section.List("ReservedPoolNamespaces", options.reserved_pool_namespaces,
               "globs (`*`, `?`) of further reserved namespaces besides `kube-system`");
  options.privileged.Describe(section, "the annotation `prefer-reserved-cpus: \"true\"`");
}

// Reads the section. `section` may be nullptr; `keys` gets the description of every option
// (ReadSection). kInvalidArgument "FILE:LINE: path: ..." for unknown keys, invalid values and
// options that exclude each other.
StatusOr<StaticPlusOptions> ReadStaticPlusOptions(const ConfigNode* section,
                                                  std::vector<ConfigKey>* keys = nullptr) {
  return ReadSection<StaticPlusOptions>(section, "policy.static-plus", &Describe, keys);
}

constexpr std::string_view kPreferReserved = "prefer-reserved-cpus";

// The reason why the container belongs to the reserved pool; empty if it does not.
std::string WhyReserved(const StaticPlusOptions& options, const Pod& pod,
                        const Container& container) {
  const std::optional<bool> annotated =
      ReadBoolAnnotation(pod.annotations, kPreferReserved, container.name);
  if (annotated == false) return "";
  if (annotated == true && options.privileged.Include(pod)) {
    return fmt::format("annotation {}", kPreferReserved);
  }
  if (!IsReservedNamespace(options.reserved_pool_namespaces, pod.namespace_name)) return "";
  return fmt::format("namespace {}", pod.namespace_name);
}

// Why the container gets no exclusive CPUs; empty if it gets the whole CPUs of its request.
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

// A note that the annotation prefer-reserved-cpus has no effect in the pod's namespace; empty if it
// has an effect, is absent, or the namespace is a reserved one.
std::string WhyNotHeeded(const StaticPlusOptions& options, const Pod& pod,
                         const Container& container) {
  const bool asks =
      ReadBoolAnnotation(pod.annotations, kPreferReserved, container.name).value_or(false);
  if (!asks || options.privileged.Include(pod) ||
      IsReservedNamespace(options.reserved_pool_namespaces, pod.namespace_name))
    return "";
  return PrivilegedNamespaces::WhyIgnored(kPreferReserved, pod, "static-plus");
}

// The entitlement of a container under static-plus. `has_reserved`: there are reserved CPUs;
// without them containers that belong there share. Pure.
//
// Annotations, in all forms of FindAnnotation (pkg/kube/annotations.h), true or false (others count
// as absent):
//   prefer-reserved-cpus   true: on the reserved CPUs, where its namespace is a privileged one;
//                          false: not there, whatever its namespace
//   prefer-shared-cpus     true: no exclusive CPUs; false: the whole ones of its request
//   prefer-isolated-cpus   false: none that the kernel isolates; true: those first
//   require-isolated-cpus  true: those or no creation
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
  // The container may need more than the reported value, by an unknown amount, which comes from the
  // shared CPUs.
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

ExclusivePolicy::Cpus PoolCpus(const PolicyContext& context) {
  const CpuSet unreserved = context.available - context.reserved;
  return {
      .shared = unreserved - context.machine.isolated(),
      .isolated = unreserved & context.machine.isolated(),
      .reserved = context.reserved,
      .lend_reserved = true,
      .unreserved = context.unreserved,
      .offline = context.offline,
  };
}

StatusOr<std::unique_ptr<Policy>> MakeStaticPlus(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const StaticPlusOptions options, ReadStaticPlusOptions(context.section));
  const Status fits = CheckExclusiveOptions(context.machine, options.exclusive);
  if (!fits.ok()) return Annotate(fits, "policy static-plus");
  const ExclusivePolicy::Cpus cpus = PoolCpus(context);
  if (cpus.shared.empty() && cpus.reserved.empty()) {
    return InvalidArgument(
        "policy static-plus: of the available CPUs ({}) none is left for shared containers without "
        "the isolated ones ({})",
        context.available.ToString(), cpus.isolated.ToString());
  }
  const auto claim = [options, has_reserved = !context.reserved.empty()](
                         const Pod& pod, const Container& container) {
    return StaticPlusClaim(options, has_reserved, pod, container);
  };
  const auto unheeded = [options](const Pod& pod, const Container& container) {
    return WhyNotHeeded(options, pod, container);
  };
  return std::make_unique<ExclusivePolicy>(
      "static-plus", context.machine, options.exclusive, cpus, PinningRule(context.runtimes),
      ExclusivePolicy::Rules{.claim = claim, .unheeded = unheeded});
}

}  // namespace

PolicyFactory StaticPlusPolicyFactory() {
  return {
      .name = "static-plus",
      .description =
          "the whole CPUs of every request are exclusive, the fraction is shared; "
          "system containers on reserved CPUs",
      .create = MakeStaticPlus,
      .read_section =
          [](const ConfigNode& section, std::vector<ConfigKey>* keys) {
            return ReadStaticPlusOptions(&section, keys).status();
          },
  };
}

}  // namespace resmgr
