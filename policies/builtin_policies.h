// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr {

// THE list of policies: what -list-policies shows and `Active` may name. It stands in
// cmd/cri-resmgr/builtin_policies.cc, and every binary that places containers or tries that out is
// linked with it.
PolicyRegistry BuiltinPolicies();

}  // namespace resmgr
