// SPDX-License-Identifier: Apache-2.0
#include "policies/static/static_policy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "pkg/allocator/alignment.h"
#include "pkg/allocator/exclusive_picker.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"
#include "pkg/config/config_section.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"
#include "pkg/model/requirements.h"
#include "pkg/model/resources_annotation.h"
#include "policies/exclusive/exclusive_policy.h"

namespace resmgr {
namespace {

// The section policy.static; README.md beside this file explains each option.
struct StaticOptions {
  // Keeps shared containers off the reserved CPUs, too (the kubelet's option of that name,
  // KEP-4540).
  bool strict_cpu_reservation = false;
  // Containers of pods with pod-level resources (KEP-2837) may get exclusive CPUs. The kubelet
  // gives them none.
  bool pod_level_exclusive = true;
  ExclusiveOptions exclusive;
  Alignment alignment = Alignment::kPrefer;
  IsolationConfig undisturbed{};  // applied by pkg/classes
};

void Describe(ConfigSection& section, StaticOptions& options) {
  section.Map("Options", [&options](ConfigSection& map) {
    map.Bool("strict-cpu-reservation", options.strict_cpu_reservation,
             "shared containers do not run on the reserved CPUs either");
    map.Choice<bool>("pod-level-exclusive", {{"kubelet", false}, {"always", true}},
                     options.pod_level_exclusive,
                     "`always`: a container of a pod with pod-level resources gets exclusive CPUs "
                     "for its own request; `kubelet`: it shares, as in the kubelet");
    DescribeExclusiveOptions(map, options.exclusive);
  });
  DescribeAlignment(section, options.alignment);
  DescribeUndisturbed(section, options.undisturbed);
  section.Bool("RelaxedIsolation", options.exclusive.prefer_isolated,
               "kernel-isolated CPUs (`isolcpus`) are preferred for every exclusive container");
}

// Reads the section. `section` may be nullptr; `keys` gets the description of every option
// (ReadSection). kInvalidArgument "FILE:LINE: path: ..." for unknown keys, invalid values and
// options that exclude each other.
StatusOr<StaticOptions> ReadStaticOptions(const ConfigNode* section,
                                          std::vector<ConfigKey>* keys = nullptr) {
  return ReadSection<StaticOptions>(section, "policy.static", &Describe, keys);
}

ExclusivePolicy::Cpus PoolCpus(const PolicyContext& context, const StaticOptions& options) {
  const CpuSet ordinary = context.available - context.machine.isolated();
  return {
      .shared = options.strict_cpu_reservation ? ordinary - context.reserved
                                               : ordinary | context.reserved,
      .isolated = (context.available & context.machine.isolated()) - context.reserved,
      .reserved = context.reserved,
      .unreserved = context.unreserved,
      .offline = context.offline,
  };
}

// A label of pods that the oldest releases of cri-resource-manager used before they had
// annotations.
constexpr std::string_view kPreferIsolatedLabel = "cri.resource-manager.prefer-isolated-cpus";

std::optional<bool> PrefersIsolated(const Pod& pod, const Container& container) {
  const std::optional<bool> annotated =
      ReadBoolAnnotation(pod.annotations, "prefer-isolated-cpus", container.name);
  if (annotated) return annotated;
  const auto label = pod.labels.find(kPreferIsolatedLabel);
  return label == pod.labels.end() ? std::nullopt : ParseBool(label->second);
}

// Whether a Guaranteed pod has pod-level resources: the webhook's annotation shows that its
// containers alone would give it another class.
bool HasPodLevelResources(const Pod& pod) {
  const auto annotation = pod.annotations.find(kResourcesAnnotation);
  if (annotation == pod.annotations.end()) return false;
  const auto alone = QosFromResourcesAnnotation(annotation->second);
  return alone.ok() && *alone && **alone != QosClass::kGuaranteed;
}

// The entitlement of a container, with the reason if it gets no exclusive CPUs.
CpuClaim StaticClaim(const StaticOptions& options, const Pod& pod, const Container& container) {
  CpuClaim claim;
  const MilliCpu request = container.requirements.cpu_request;
  if (pod.qos != QosClass::kGuaranteed) {
    claim.why = pod.qos == QosClass::kBurstable ? "Burstable pod" : "BestEffort pod";
  } else if (request.value == 0) {
    claim.why = "no CPU request";
  } else if (!request.IsWhole()) {
    claim.why = fmt::format("CPU request of {}m is not whole", request.value);
  } else if (const std::string_view why = WhyCpuIsOfPod(container.requirements); !why.empty()) {
    claim.why = why;
  } else if (!options.pod_level_exclusive && HasPodLevelResources(pod)) {
    claim.why = "pod with pod-level resources";
  } else {
    claim.exclusive = static_cast<int>(std::min<int64_t>(request.Whole(), CpuSet::kBits));
    claim.shared = WantsSharedCpus(pod.annotations, container.name);
    claim.prefer_isolated = PrefersIsolated(pod, container);
    claim.require_isolated =
        ReadBoolAnnotation(pod.annotations, "require-isolated-cpus", container.name)
            .value_or(false);
    const AnnotatedAlignment annotated = ReadAlignmentAnnotation(pod.annotations, container.name);
    claim.alignment = annotated.alignment.value_or(options.alignment);
    claim.why = fmt::format("Guaranteed pod with {}{}", CountText(claim.exclusive, "whole CPU"),
                            annotated.Note());
    if (claim.shared) claim.why += kAndSharedNote;
    if (MayAskForMore(container)) claim.why += kMayAskForMoreNote;
  }
  claim.why += container.needs_note;
  return claim;
}

StatusOr<std::unique_ptr<Policy>> MakeStatic(const PolicyContext& context) {
  RESMGR_ASSIGN_OR_RETURN(const StaticOptions options, ReadStaticOptions(context.section));
  const Status fits = CheckExclusiveOptions(context.machine, options.exclusive);
  if (!fits.ok()) return Annotate(fits, "policy static");
  if (PoolCpus(context, options).shared.empty()) {
    return InvalidArgument(
        "policy static: of the available CPUs ({}) none is left for shared containers without the "
        "isolated ({}){}",
        context.available.ToString(), context.machine.isolated().ToString(),
        options.strict_cpu_reservation
            ? fmt::format(" and the reserved ones ({})", context.reserved.ToString())
            : "");
  }
  const auto claim = [options](const Pod& pod, const Container& container) {
    return StaticClaim(options, pod, container);
  };
  return std::make_unique<ExclusivePolicy>(
      "static", context.machine, options.exclusive, PoolCpus(context, options),
      PinningRule(context.runtimes), ExclusivePolicy::Rules{.claim = claim});
}

}  // namespace

PolicyFactory StaticPolicyFactory() {
  return {
      .name = "static",
      .description =
          "whole CPUs of Guaranteed pods are exclusive, all other containers share the rest",
      .create = MakeStatic,
      .read_section =
          [](const ConfigNode& section, std::vector<ConfigKey>* keys) {
            return ReadStaticOptions(&section, keys).status();
          },
  };
}

}  // namespace resmgr
