// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/log/log.h"
#include "pkg/metrics/metrics.h"
#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/pod_limits.h"
#include "pkg/resmgr/set_later.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Detects another component that assigns CPUs: most likely the kubelet's CPU Manager, whose updates
// carry its own cpusets. These never take effect, so the wrong setup of the node would not be
// noticed. Each such update is counted; the first one of a daemon is logged as a warning. On the
// loop's thread.
class CpusetOverrides {
 public:
  // `metrics` may be null. `warned` is whether this daemon has warned already; nullptr: it has not.
  CpusetOverrides(Metrics* metrics, bool* warned);
  CpusetOverrides(const CpusetOverrides&) = delete;
  CpusetOverrides& operator=(const CpusetOverrides&) = delete;

  // The CPUs that the policy decided for a container; nullopt if it leaves them alone.
  struct Ours {
    std::optional<CpuSet> before;   // decided last, before this update
    std::optional<CpuSet> decided;  // decided for this update
    std::optional<CpuSet> carried;  // CPUs sent in place of the requested ones
  };
  // Notes an admitted update that asks for the CPUs in the list `asked`. A request for one of the
  // sets in `ours` is not an override.
  void Note(std::string_view container, std::string_view asked, const Ours& ours);

 private:
  Logger& log_;
  Metrics* const metrics_;
  bool own_warned_ = false;
  bool& warned_;
};

// The kubelet's updates of containers: decided, forwarded, and taken back if the runtime refuses
// them. Owns ContainerRecord::updates, confirmed and update_failed. Loop's thread only.
class Updates {
 public:
  // All must outlive it.
  Updates(Brain& brain, PodLimits& pod_limits, SetLater& set_later)
      : brain_(brain),
        pod_limits_(pod_limits),
        set_later_(set_later),
        overrides_(brain.options.metrics, brain.options.overrides_warned) {}

  // Merges the update into what the container requests and lets the policy decide again, also about
  // its pod's other containers, whose part of the pod's resources changes. The adjustment carries
  // the cpuset of the policy, whatever the request says. Each request for other CPUs is counted,
  // and the first one is also a warning (CpusetOverrides). CPUs that another container has to leave
  // first follow in an update of the manager's own. A refusal changes nothing. Returns an empty
  // adjustment for a container that is not known here.
  StatusOr<Admission> Admit(const ContainerId& id, const LinuxResources& requested,
                            RefusalKind refusal);
  // `sent`: what all stages, the brain's among them, changed in the request; nullptr if the update
  // failed.
  void End(const Admission& admission, const ResourceValues* sent);

 private:
  void Merge(const ContainerRecord& record, const LinuxResources& changes,
             LinuxResources& requested, Requirements& needs) const;
  StatusOr<ContainerKeys> Redecide(ContainerRecord& record, const LinuxResources& requested,
                                   const Requirements& needs);
  StatusOr<ContainerKeys> DecideInPod(ContainerRecord& record, const LinuxResources& requested,
                                      const Requirements& needs);
  void SetRequested(Container& container, LinuxResources requested) const;
  ContainerKeys RollBack(ContainerRecord& record);

  Brain& brain_;
  PodLimits& pod_limits_;
  SetLater& set_later_;
  CpusetOverrides overrides_;
  uint64_t last_ticket_ = 0;
};

}  // namespace resmgr
