// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr::test {

// The choices of a kubelet with the CPU Manager policy static, its option
// prefer-align-cpus-by-uncorecache and the Topology Manager policy best-effort, written from its
// rules, to compare with: the narrowest set of NUMA nodes with enough free CPUs, the lowest among
// equals, one before others that is as small as any set of nodes could be for so many CPUs; there
// as the static policy chooses. Memory is not bound. For machines of up to twelve NUMA nodes;
// containers are not resized, and there is nothing to take over.
PolicyFactory KubeletLikePolicyFactory();

}  // namespace resmgr::test
