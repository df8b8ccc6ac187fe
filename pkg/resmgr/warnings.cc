// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/warnings.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/annotations.h"

namespace resmgr {
namespace {

// Limit of remembered pods, since the end of a pod is not reported here. If it is reached, a pod
// may be warned about again.
constexpr size_t kMostPods = 1024;

}  // namespace

void AnnotationWarnings::OnAdopted(std::span<const Act> acts) {
  for (const Act& act : acts)
    Look(act);
}

void AnnotationWarnings::Look(const Act& act) {
  for (const std::string& why : act.policy.Unheeded(act.pod, act.container)) {
    log_.Warn("container {}: {}; see docs/security.md",
              Printable(FullName(act.pod, act.container.name)), Printable(why));
  }
  LookForTypos(act.pod);
}

void AnnotationWarnings::LookForTypos(const Pod& pod) {
  if (pod.annotations.empty() || looked_at_.contains(pod.id)) return;
  if (looked_at_.size() == kMostPods) looked_at_.clear();
  looked_at_.insert(pod.id);
  std::vector<std::string> typos = MistypedAnnotations(pod.annotations);
  std::ranges::move(MistypedInMaps(pod.annotations), std::back_inserter(typos));
  for (const std::string& typo : typos) {
    log_.Warn("pod {}/{}: {}; see docs/annotations.md", Printable(pod.namespace_name),
              Printable(pod.name), typo);
  }
}

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
      "container {} has a CPU limit, and its handler \"{}\" has Pinning {}: cri-resmgr sets no "
      "quota "
      "for pod sandboxes. A runtime that runs containers in the sandbox's own process, as gVisor "
      "does, limits them by nothing but the pod's cgroup; see docs/runtime-classes.md. Further "
      "pods of this handler are not reported",
      Printable(FullName(act.pod, act.container.name)), Printable(found->first),
      ToString(found->second));
  handlers_.erase(found);
}

}  // namespace resmgr
