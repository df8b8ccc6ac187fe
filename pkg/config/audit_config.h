// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// The comparison of what containers really have with what was decided (pkg/audit).
struct AuditConfig {
  // From one audit to the next; 0: only when it is asked for.
  std::chrono::milliseconds interval = std::chrono::minutes(1);
  // Whether a periodic audit sends what was decided again to a container that has drifted.
  bool repair = false;

  friend bool operator==(const AuditConfig&, const AuditConfig&) = default;
};

// Reads the module `audit`.
void ReadAudit(MapReader& audit, AuditConfig& config);
// The same, for printing: with every option.
ConfigNode AuditNode(const AuditConfig& config);

}  // namespace resmgr
