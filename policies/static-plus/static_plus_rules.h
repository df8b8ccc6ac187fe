// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "policies/exclusive/exclusive_policy.h"
#include "policies/static-plus/static_plus_options.h"

namespace resmgr {

// The entitlement of a container under static-plus. `has_reserved`: there are reserved CPUs;
// without them containers that belong there share. Pure.
//
// Annotations, in all forms of FindAnnotation (pkg/kube/annotations.h), true or false (others count
// as absent):
//   prefer-reserved-cpus   true: on the reserved CPUs, where its namespace is a privileged one;
//                          false: not there, whatever its namespace
//   prefer-shared-cpus     true: no exclusive CPUs; false: the whole ones of its request
//   prefer-isolated-cpus   false: none that the kernel isolates; true: those first
//   require-isolated-cpus  true: those or no creation
CpuClaim StaticPlusClaim(const StaticPlusOptions& options, bool has_reserved, const Pod& pod,
                         const Container& container);

// The note that the annotation prefer-reserved-cpus does not count in the pod's namespace; empty if
// it counts, is absent, or the namespace is a reserved one.
std::string WhyNotHeeded(const StaticPlusOptions& options, const Pod& pod,
                         const Container& container);

}  // namespace resmgr
