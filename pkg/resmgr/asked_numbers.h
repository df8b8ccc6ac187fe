// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/cpu_numbers.h"
#include "pkg/resmgr/container_record.h"

namespace resmgr {

// Shows clients the CPU numbers that they requested for a container. Kubelets take the numbers that
// a runtime reports for the resources that the container got, and compare them with the pod's.
// Where the policy or a later stage had others put in force, a pod would never get what it was
// resized to, as far as its kubelet can tell.
//
// A reported number that differs from the one that was sent was set by another program, and is
// shown. While an update of the client is under way, the request before it counts. Memory limits
// are never touched.

// Whether a report about the container may have to be changed.
bool SentOtherNumbers(const ContainerRecord& record);
// Replaces the sent numbers in the report by those that the client requested.
void ShowAsked(const ContainerRecord& record, CpuNumbers& reported);

}  // namespace resmgr
