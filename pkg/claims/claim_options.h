// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/string_map.h"
#include "pkg/claims/claim.h"

namespace resmgr {

// The name of a kind of cores: "standard", "p-core", "e-core". dra-driver-cpu has these values of
// the attribute `coreType` of its devices; the claim parameter of this name takes them, too.
std::string_view CoreTypeName(CoreKind kind);
// Also accepts "performance" and "efficient", which the policy balloons uses. nullopt: no such
// name.
std::optional<CoreKind> ParseCoreType(std::string_view name);

// The annotations by which a container asks for these options: policies read them in no other form.
// For policies the type of cores is only a preference, so PartPlacer checks the placement.
StringMap AnnotationsFor(const ClaimOptions& options);

// The parameters that restrict where a claim's CPUs may be, as users write them: " (coreType
// p-core, l3)"; "" if there are none.
std::string DescribeOptions(const ClaimOptions& options);

}  // namespace resmgr
