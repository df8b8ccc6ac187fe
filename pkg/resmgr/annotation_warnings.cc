// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/annotation_warnings.h"

#include <string>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/kube/annotation_typos.h"

namespace resmgr {
namespace {

// The limit of remembered pods, since none is told to be gone: a pod may be named again after that.
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
  if (mistyped_.contains(pod.id)) return;
  const std::vector<std::string> typos = MistypedAnnotations(pod.annotations);
  if (typos.empty()) return;
  if (mistyped_.size() == kMostPods) mistyped_.clear();
  mistyped_.insert(pod.id);
  for (const std::string& typo : typos) {
    log_.Warn("pod {}/{}: {}; see docs/annotations.md", Printable(pod.namespace_name),
              Printable(pod.name), typo);
  }
}

}  // namespace resmgr
