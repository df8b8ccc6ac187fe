// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

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
  // kept from exclusive grants (pkg/model/snapshot.h), and the resources of all its containers
  // together, which bound them (pkg/model/requirements.h).
  LinuxResources overhead{};
  LinuxResources resources{};
};

// Names and UID of a pod or container where a message's metadata leave them out: kubelets put the
// same into labels (pkg/kubelet/types/labels.go in Kubernetes), and the UID into the name of the
// pod's cgroup.

// Fills name, namespace and UID where they are empty: from the labels io.kubernetes.pod.name,
// .namespace and .uid, the UID else from the cgroup parent.
void CompleteIdentity(Pod& pod);

// The label io.kubernetes.container.name; empty when there is none. A view into `labels`.
std::string_view ContainerNameOf(const StringMap& labels);

}  // namespace resmgr
