// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr {

// THE list of policies, which -list-policies shows and from which `Active` chooses. It stands in
// cmd/cri-resmgr/builtin_policies.cc, and every binary that places containers or tries that out is
// linked with it.
PolicyRegistry BuiltinPolicies();

}  // namespace resmgr
