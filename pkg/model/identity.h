// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/model/pod.h"

namespace resmgr {

// Names and UID of a pod or container where a message's metadata leave them out: kubelets put the
// same into labels (pkg/kubelet/types/labels.go in Kubernetes), and the UID into the name of the
// pod's cgroup.

// Fills name, namespace and UID where they are empty: from the labels io.kubernetes.pod.name,
// .namespace and .uid, the UID else from the cgroup parent.
void CompleteIdentity(Pod& pod);

// The label io.kubernetes.container.name; empty when there is none. A view into `labels`.
std::string_view ContainerNameOf(const StringMap& labels);

}  // namespace resmgr
