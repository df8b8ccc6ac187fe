// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/policy/registry.h"

namespace resmgr {

// THE list of policies: what -list-policies shows and `Active` may name.
PolicyRegistry BuiltinPolicies();

}  // namespace resmgr
