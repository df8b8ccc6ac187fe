// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/base/string_map.h"
#include "pkg/model/pod.h"

namespace resmgr::docker {

// What dockershim and cri-dockerd write on the containers that they make: labels, and names
// "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT", with one part more where a name was taken.

// Labels with this prefix are annotations.
inline constexpr std::string_view kAnnotationPrefix = "annotation.";

// What a container of Docker is to the node.
struct Identity {
  enum class Kind : uint8_t { kOther, kSandbox, kContainer };
  Kind kind = Kind::kOther;
  PodSandboxId pod_id;    // of a pod's container
  std::string container;  // its name in the pod
  uint32_t attempt = 0;
  StringMap labels;  // those that are no annotations
  StringMap annotations;
  // Name, namespace and uid of the pod; the labels and annotations of a sandbox.
  Pod pod;
};

// `name`: without the slash that Docker shows in front. Pure function.
Identity ReadIdentity(const StringMap& labels, std::string_view name);

// A slice of systemd, which dockerd takes by its name alone, with those that it is in, as a kubelet
// names it to CRI runtimes: "/a.slice/a-b.slice". Other paths stay.
std::string WholeCgroup(std::string_view cgroup_parent);
// The reverse, where dockerd was given a name alone before.
std::string CgroupForEngine(std::string_view whole, std::string_view before);

// The pod's class and uid as the cgroup says that dockerd is to make containers in: a path of
// cgroupfs, or a slice of systemd.
void AddCgroup(std::string_view cgroup_parent, Pod& pod);

}  // namespace resmgr::docker
