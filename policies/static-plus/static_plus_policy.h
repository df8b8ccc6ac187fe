// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr {

// The whole CPUs of every container's request are exclusive, whatever the class of its pod; the
// fraction comes from the shared CPUs. System containers run on the reserved CPUs. Rules, options,
// annotations and differences from the policy of that name in CRI Resource Manager: README.md
// beside this file.
//
// The shared set is never empty: if all other CPUs are granted, it consists of the reserved ones,
// and if there are none, an allocation that would take its last CPU is refused.
//
// Creating it fails with kInvalidArgument if the section is invalid or no CPUs are left to share.
PolicyFactory StaticPlusPolicyFactory();

}  // namespace resmgr
