// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr {

// The list of policies that -list-policies shows and from which `Active` chooses. It is defined in
// cmd/cri-resmgr/builtin_policies.cc; every binary that places containers, or tries that out, is
// linked with that file.
PolicyRegistry BuiltinPolicies();

}  // namespace resmgr
