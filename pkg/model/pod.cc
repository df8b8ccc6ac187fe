// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/pod.h"

#include <optional>

#include "pkg/kube/qos.h"

namespace resmgr {
namespace {

std::string_view LabelOf(const StringMap& labels, std::string_view key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

void CompleteIdentity(Pod& pod) {
  if (pod.name.empty()) pod.name = LabelOf(pod.labels, "io.kubernetes.pod.name");
  if (pod.namespace_name.empty()) {
    pod.namespace_name = LabelOf(pod.labels, "io.kubernetes.pod.namespace");
  }
  if (!pod.uid.empty()) return;
  pod.uid = PodUid(LabelOf(pod.labels, "io.kubernetes.pod.uid"));
  if (!pod.uid.empty()) return;
  if (const std::optional<PodCgroup> cgroup = ParsePodCgroup(pod.cgroup_parent)) {
    pod.uid = cgroup->uid;
  }
}

std::string_view ContainerNameOf(const StringMap& labels) {
  return LabelOf(labels, "io.kubernetes.container.name");
}

}  // namespace resmgr
