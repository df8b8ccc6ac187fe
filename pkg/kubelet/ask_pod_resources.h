// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/kubelet/pod_devices.h"
#include "pkg/model/container.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// How a kubelet is asked.
struct PodResourcesServer {
  std::string socket{};
  NodeSet nodes{};                         // the machine's nodes; others are ignored
  std::chrono::milliseconds timeout{200};  // for all calls of one question
  size_t max_answer = size_t{16} << 20;    // bytes, as other clients of this API take
};

// The hints for one container, from Get, or from List where the kubelet has no Get (before 1.34,
// unless the feature gate KubeletPodResourcesGet is on). None for a pod that the kubelet does not
// know. A kubelet that has too many calls for the moment is asked again. Accesses the file system
// and waits for the answer: to be called off the loop. Otherwise the status tells why the kubelet
// did not answer.
StatusOr<std::vector<LocalityHint>> AskPodResources(const PodResourcesServer& server,
                                                    const PodContainer& container);

}  // namespace resmgr
