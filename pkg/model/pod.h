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
  // Nothing about the pod itself tells its class: `qos` is that of what its containers ask for.
  bool qos_derived = false;
  std::string cgroup_parent;
  std::string runtime_handler;
  StringMap labels;
  StringMap annotations;
  // For the pod as a whole, as the last request about it said: what the runtime class costs besides
  // the containers, which is kept from exclusive grants (pkg/model/overhead.h), and what these have
  // together, which bounds them (pkg/model/pod_division.h).
  LinuxResources overhead{};
  LinuxResources resources{};
};

}  // namespace resmgr
