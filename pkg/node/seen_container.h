// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// A container that calls have passed of, with its pod, as a front door knows it without a brain:
// identities, labels and annotations, and in `requested` what it has now. Its state and what a
// policy decides are not known. A value.
struct SeenContainer {
  Pod pod;
  Container container;
};

}  // namespace resmgr
