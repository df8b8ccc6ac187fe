// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr {

// The kubelet's static CPU manager policy: a container of a Guaranteed pod that requests whole CPUs
// gets that many exclusive ones; all other containers run on the shared set, which is the rest
// (pkg/kubelet/cm/cpumanager in Kubernetes 1.33; KEP-3570). Rules, options and differences from the
// kubelet: README.md beside this file.
//
// The shared set is never empty: an allocation that would take its last CPU is refused.
//
// Creating it fails with kInvalidArgument if the section is invalid or the CPUs leave none to
// share.
PolicyFactory StaticPolicyFactory();

}  // namespace resmgr
