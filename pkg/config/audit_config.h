// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "pkg/config/config_section.h"

namespace resmgr {

// Configures the comparison of containers' real resources with the decided ones (pkg/audit).
struct AuditConfig {
  // Time from one audit to the next; 0: only on request.
  std::chrono::milliseconds interval = std::chrono::minutes(1);
  // Whether a periodic audit sends the decided values again to a container that differs.
  bool repair = false;

  friend bool operator==(const AuditConfig&, const AuditConfig&) = default;
};

// The module `audit`.
void DescribeAudit(ConfigSection& root, AuditConfig& config);

}  // namespace resmgr
