// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "pkg/resmgr/admission.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/cpuset_overrides.h"
#include "pkg/resmgr/set_later.h"

namespace resmgr {

// The kubelet's updates of containers: decided, forwarded, and taken back where the runtime refuses
// them. Owns ContainerRecord::updates, confirmed and update_failed. Loop's thread only.
class Updates {
 public:
  // Both must outlive it.
  Updates(Brain& brain, SetLater& set_later, const BrainOptions& options)
      : brain_(brain),
        set_later_(set_later),
        overrides_(options.metrics, options.overrides_warned) {}

  // See ResourceManager::AdmitUpdate.
  StatusOr<Admission> Admit(const ContainerId& id, const LinuxResources& requested,
                            RefusalKind refusal);
  // `sent` has the changes of all stages; nullptr if the update failed.
  void End(const Admission& admission, const ResourceValues* sent);

 private:
  StatusOr<ContainerKeys> Redecide(ContainerRecord& record, const LinuxResources& requested,
                                   const Requirements& needs);
  void SetRequested(Container& container, LinuxResources requested) const;
  ContainerKeys RollBack(ContainerRecord& record);

  Brain& brain_;
  SetLater& set_later_;
  CpusetOverrides overrides_;
  uint64_t last_ticket_ = 0;
};

}  // namespace resmgr
