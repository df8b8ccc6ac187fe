// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/base/ids.h"

namespace resmgr {

// The QoS class of a pod (status.qosClass; pkg/apis/core/v1/helper/qos in Kubernetes 1.33).
enum class QosClass { kGuaranteed, kBurstable, kBestEffort };

std::string_view ToString(QosClass qos);  // "Guaranteed", ...

// What the name of a pod's cgroup says.
struct PodCgroup {
  QosClass qos = QosClass::kBestEffort;
  PodUid uid;

  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

// Reads the cgroup parent of a sandbox, the only place where a CRI request tells the pod's QoS
// class. Both cgroup drivers of the kubelet, below any number of root directories, with or without
// slashes at the ends:
//   cgroupfs  [ROOT/...]kubepods/[system/][burstable/|besteffort/]pod<UID>
//   systemd   [.../][ROOT-...]kubepods-[system-][burstable-|besteffort-]pod<UID with _ for ->.slice
// Below "system" are the pods that the kubelet keeps apart as the system's (KEP-5894).
// nullopt when the path is no pod's.
std::optional<PodCgroup> ParsePodCgroup(std::string_view cgroup_parent);

}  // namespace resmgr
