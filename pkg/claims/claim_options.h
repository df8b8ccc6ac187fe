// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/string_map.h"
#include "pkg/claims/claim.h"

namespace resmgr {

// The names of kinds of cores that dra-driver-cpu has for the attribute `coreType` of its devices,
// and which the parameter of this name takes: "standard", "p-core", "e-core".
std::string_view CoreTypeName(CoreKind kind);
// nullopt: no such name. The names of the policy balloons, "performance" and "efficient", count,
// too.
std::optional<CoreKind> ParseCoreType(std::string_view name);

// The annotations by which a container asks for these options: policies read no other form of them.
// The type of cores is a preference there, so PartPlacer checks the placement.
StringMap AnnotationsFor(const ClaimOptions& options);

// The parameters that narrow where a claim's CPUs may be, as users write them:
// " (coreType p-core, l3)". "": there are none.
std::string DescribeOptions(const ClaimOptions& options);

}  // namespace resmgr
