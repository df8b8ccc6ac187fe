// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/cpuset_overrides.h"

#include "pkg/base/parse.h"

namespace resmgr {

CpusetOverrides::CpusetOverrides(Metrics* metrics, bool* warned)
    : log_(GetLogger("resmgr")),
      metrics_(metrics),
      warned_(warned == nullptr ? own_warned_ : *warned) {}

void CpusetOverrides::Note(std::string_view container, std::string_view asked, const Ours& ours) {
  // An empty list is how a request leaves CPUs as they are.
  if (asked.empty() || !ours.carried) return;
  // A list that cannot be read is replaced, too.
  const StatusOr<CpuSet> cpus = CpuSet::Parse(asked);
  if (cpus.ok() && (*cpus == ours.before || *cpus == ours.decided || *cpus == ours.carried)) return;
  if (metrics_ != nullptr) metrics_->Count(Metrics::Event::kCpusetOverridden);
  if (warned_) {
    log_.Debug("an update asks for CPUs {} for container {}, which gets {}", Printable(asked),
               container, ours.carried->ToString());
    return;
  }
  warned_ = true;
  log_.Warn(
      "an update asks for CPUs {} for container {}, which gets {} as the policy decided: another "
      "program places containers, too. If it is the kubelet's CPU manager, set cpuManagerPolicy to "
      "none in the kubelet's configuration. Further such updates are only counted "
      "(cri_resmgr_overridden_cpusets_total)",
      Printable(asked), container, ours.carried->ToString());
}

}  // namespace resmgr
