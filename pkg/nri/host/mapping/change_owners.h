// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "pkg/model/adjustment.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// The full name of the plugin that made the change; for hooks all: "10-a,20-b"; "": none. `owned`
// are the owned fields of one container, ordered as AdjustmentMerge::owned has them.
std::string PluginBehind(std::span<const OwnedField> owned, const FieldChange& change);

}  // namespace resmgr::nri
