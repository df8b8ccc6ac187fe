// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/base/ids.h"

namespace resmgr {

// The QoS class of a pod (status.qosClass; pkg/apis/core/v1/helper/qos in Kubernetes 1.33).
enum class QosClass { kGuaranteed, kBurstable, kBestEffort };

std::string_view ToString(QosClass qos);  // "Guaranteed", ...

// The parts that the name of a pod's cgroup states.
struct PodCgroup {
  QosClass qos = QosClass::kBestEffort;
  PodUid uid;

  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

// Parses the cgroup parent of a sandbox, the only place of the pod's QoS class in a CRI request.
// Supports both cgroup drivers of the kubelet, below any number of root directories, with or
// without slashes at the ends:
//   cgroupfs  [ROOT/...]kubepods/[system/][burstable/|besteffort/]pod<UID>
//   systemd   [.../][ROOT-...]kubepods-[system-][burstable-|besteffort-]pod<UID with _ for ->.slice
// Pods below "system" are system pods, which the kubelet separates from others (KEP-5894). nullopt
// if the path does not belong to a pod.
std::optional<PodCgroup> ParsePodCgroup(std::string_view cgroup_parent);

}  // namespace resmgr
