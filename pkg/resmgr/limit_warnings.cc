// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/limit_warnings.h"

#include "pkg/base/parse.h"

namespace resmgr {

LimitWarnings::LimitWarnings(const RuntimesConfig& runtimes) : log_(GetLogger("resmgr")) {
  for (const auto& [handler, options] : runtimes.classes) {
    if (options.pinning != Pinning::kContainer) handlers_.emplace(handler, options.pinning);
  }
}

void LimitWarnings::OnAdopted(std::span<const Act> acts) {
  for (const Act& act : acts)
    Look(act);
}

void LimitWarnings::Look(const Act& act) {
  if (handlers_.empty() || act.container.requested.cpu_quota.value_or(0) <= 0) return;
  const auto found = handlers_.find(act.pod.runtime_handler);
  if (found == handlers_.end()) return;
  log_.Warn(
      "container {} has a CPU limit, and its handler {} has Pinning {}: cri-resmgr sets no quota "
      "for pod sandboxes. A runtime that runs containers in the sandbox's own process, as gVisor "
      "does, limits them by nothing but the pod's cgroup; see docs/runtime-classes.md. Further "
      "pods of this handler are not reported",
      Printable(FullName(act.pod, act.container.name)), Printable(found->first),
      ToString(found->second));
  handlers_.erase(found);
}

}  // namespace resmgr
