// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/isolation_wish.h"

#include <array>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"
#include "pkg/kube/crio_annotations.h"

namespace resmgr {
namespace {

constexpr std::string_view kKey = "isolation";

Status WrongValue(std::string_view key, std::string_view value, std::string_view known) {
  return InvalidArgument("annotation {}: \"{}\" is not {}", key, Printable(value, 64), known);
}

bool Disables(std::string_view value) {
  return value == "disable" || value == "true";
}

Status ReadInterrupts(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (!Disables(value) && value != "housekeeping")
    return WrongValue(key, value, "disable or housekeeping");
  wish.isolation.interrupts = Disables(value) ? IsolationConfig::Interrupts::kIsolate
                                              : IsolationConfig::Interrupts::kHousekeeping;
  wish.tells_housekeeping = !Disables(value);
  return OkStatus();
}

Status ReadQuota(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (!Disables(value)) return WrongValue(key, value, "disable");
  wish.isolation.quota = IsolationConfig::Quota::kLift;
  return OkStatus();
}

Status ReadLoadBalancing(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (!Disables(value)) return WrongValue(key, value, "disable");
  wish.isolation.partition = IsolationConfig::Partition::kIsolated;
  return OkStatus();
}

Status ReadIdleStates(std::string_view key, std::string_view value, IsolationWish& wish) {
  constexpr std::string_view kMaximum = "max_latency:";
  constexpr int64_t kMost = 1'000'000;
  if (value == "disable") {
    wish.isolation.max_latency = "n/a";
    return OkStatus();
  }
  if (value == "enable") {
    wish.isolation.max_latency = "0";
    return OkStatus();
  }
  if (value.starts_with(kMaximum)) {
    const std::optional<int64_t> latency = ParseInt(value.substr(kMaximum.size()));
    if (latency && *latency > 0 && *latency <= kMost) {
      wish.isolation.max_latency = fmt::format("{}", *latency);
      return OkStatus();
    }
  }
  return WrongValue(key, value, "disable, enable or max_latency:MICROSECONDS");
}

Status ReadGovernor(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (value.empty() || !CheckGovernor(value).ok())
    return WrongValue(key, value, "the name of a governor");
  wish.isolation.governor = value;
  return OkStatus();
}

Status ReadCpuShared(std::string_view key, std::string_view value, IsolationWish& wish) {
  if (value != "enable") return WrongValue(key, value, "enable");
  wish.tells_shared = true;
  return OkStatus();
}

struct CrioKey {
  std::string_view key;
  Status (*read)(std::string_view key, std::string_view value, IsolationWish& wish);
};

constexpr std::array kCrioKeys = {CrioKey{"irq-load-balancing.crio.io", ReadInterrupts},
                                  CrioKey{"cpu-quota.crio.io", ReadQuota},
                                  CrioKey{"cpu-load-balancing.crio.io", ReadLoadBalancing},
                                  CrioKey{"cpu-c-states.crio.io", ReadIdleStates},
                                  CrioKey{"cpu-freq-governor.crio.io", ReadGovernor},
                                  CrioKey{kCpuSharedAnnotation, ReadCpuShared}};

Status ReadOwn(const Pod& pod, std::string_view container, IsolationConfig& isolation) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode node, ReadAnnotation(pod.annotations, kKey, container));
  ConfigSection section(node, kKey);
  DescribeIsolation(section, isolation);
  return section.Finish();
}

}  // namespace

StatusOr<IsolationWish> IsolationOf(const Pod& pod, std::string_view container,
                                    const ClassesConfig& config) {
  IsolationWish wish{.isolation = config.isolation, .source = config.isolation_source};
  if (pod.annotations.empty()) return wish;
  const bool allowed = config.Allows(kKey, "", pod.namespace_name);
  std::string keys;
  const auto counts = [&](std::string_view key) {
    keys.append(keys.empty() ? "" : ", ").append(key);
    return allowed;
  };
  const auto own = FindAnnotation(pod.annotations, kKey, container);
  const bool notes_asked = config.absent == ClassesConfig::Absent::kRefuse;
  IsolationWish asked;
  if (own && counts(own->key)) {
    RESMGR_RETURN_IF_ERROR(ReadOwn(pod, container, wish.isolation));
    if (notes_asked) RESMGR_RETURN_IF_ERROR(ReadOwn(pod, container, asked.isolation));
  }
  for (const CrioKey& crio : kCrioKeys) {
    const auto found = FindCrioAnnotation(pod.annotations, crio.key, container);
    if (!found || !counts(found->first)) continue;
    RESMGR_RETURN_IF_ERROR(crio.read(found->first, found->second, wish));
    if (notes_asked) RESMGR_RETURN_IF_ERROR(crio.read(found->first, found->second, asked));
  }
  const auto affinity = FindAnnotation(pod.annotations, "irq-affinity", container);
  if (affinity && counts(affinity->key))
    RESMGR_RETURN_IF_ERROR(ReadInterruptWish(pod.annotations, container, wish.affinity));
  wish.asked = std::move(asked.isolation);
  if (keys.empty()) return wish;
  if (allowed) {
    wish.source = fmt::format("annotation {}", Printable(keys, 512));
  } else {
    wish.note = fmt::format(
        "annotation {} ignored: namespace {} is not in classes.AllowedNamespaces.isolation",
        Printable(keys, 512), Printable(pod.namespace_name));
  }
  return wish;
}

}  // namespace resmgr
