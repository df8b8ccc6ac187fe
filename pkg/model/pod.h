// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/base/ids.h"
#include "pkg/base/string_map.h"
#include "pkg/kube/qos.h"
#include "pkg/model/resources.h"

namespace resmgr {

// A pod sandbox as the runtime knows it.
struct Pod {
  PodSandboxId id;
  PodUid uid;
  std::string name;
  std::string namespace_name;
  QosClass qos = QosClass::kBestEffort;
  // The pod's class is not stated: `qos` is derived from its containers' requests.
  bool qos_derived = false;
  std::string cgroup_parent;
  std::string runtime_handler;
  StringMap labels;
  StringMap annotations;
  // The pod as a whole, by the last request about it: the overhead of the runtime class, which is
  // kept from exclusive grants (pkg/model/overhead.h), and the resources of all its containers
  // together, which bound them (pkg/model/pod_division.h).
  LinuxResources overhead{};
  LinuxResources resources{};
};

}  // namespace resmgr
