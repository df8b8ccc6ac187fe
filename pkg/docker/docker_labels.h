// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/base/string_map.h"
#include "pkg/model/pod.h"

namespace resmgr::docker {

// The marks of dockershim and cri-dockerd on their containers: labels, and names
// "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT", with one more part if a name was taken.

// Labels with this prefix are annotations.
inline constexpr std::string_view kAnnotationPrefix = "annotation.";

// The role of a Docker container on the node.
struct Identity {
  enum class Kind : uint8_t { kOther, kSandbox, kContainer };
  Kind kind = Kind::kOther;
  PodSandboxId pod_id;    // for a pod's container
  std::string container;  // container's name in the pod
  uint32_t attempt = 0;
  StringMap labels;  // labels, without those that stand for annotations
  StringMap annotations;
  // Name, namespace and uid of the pod; for a sandbox also labels and annotations.
  Pod pod;
};

// `name` comes without the slash that Docker puts in front. Pure function.
Identity ReadIdentity(const StringMap& labels, std::string_view name);

// The full path of a systemd slice, which dockerd takes by its name alone, as a kubelet names it to
// CRI runtimes: "/a.slice/a-b.slice". Other paths are returned unchanged.
std::string WholeCgroup(std::string_view cgroup_parent);
// The reverse of WholeCgroup: returns the slice's name alone if `before`, the request's cgroup
// parent, was one.
std::string CgroupForEngine(std::string_view whole, std::string_view before);

// Sets the pod's class and uid from its cgroup, a path of cgroupfs or a systemd slice.
void AddCgroup(std::string_view cgroup_parent, Pod& pod);

}  // namespace resmgr::docker
