// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/model/container.h"
#include "pkg/model/plugin_view.h"
#include "pkg/model/pod.h"

namespace resmgr {

// A container that a front door knows from the calls that passed, without a brain: identities,
// labels, annotations, and its present resources in `requested`. Its state and a policy's decisions
// are unknown. A value type.
struct SeenContainer {
  Pod pod;
  Container container;
};

}  // namespace resmgr
