// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// A container known from passing calls, with its pod, as a front door knows it without a brain:
// identities, labels and annotations, and in `requested` its present resources. Its state and a
// policy's decisions are unknown. A value.
struct SeenContainer {
  Pod pod;
  Container container;
};

}  // namespace resmgr
