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
  // No class was stated for the pod: `qos` is derived from the requests of its containers.
  bool qos_derived = false;
  std::string cgroup_parent;
  std::string runtime_handler;
  StringMap labels;
  StringMap annotations;
  // The pod as a whole, by the last request about it: `overhead` is that of the RuntimeClass, which
  // is kept from exclusive grants (pkg/model/snapshot.h); `resources` bound all containers together
  // (pkg/model/requirements.h).
  LinuxResources overhead{};
  LinuxResources resources{};
};

// Names and UID of a pod or container if a message's metadata lack them: kubelets also put them
// into labels (pkg/kubelet/types/labels.go in Kubernetes), and the UID into the name of the pod's
// cgroup.

// Fills name, namespace and UID if they are empty, from the labels io.kubernetes.pod.name,
// .namespace and .uid. Without that label the UID comes from the cgroup parent.
void CompleteIdentity(Pod& pod);

// The label io.kubernetes.container.name; empty when there is none. A view into `labels`.
std::string_view ContainerNameOf(const StringMap& labels);

}  // namespace resmgr
