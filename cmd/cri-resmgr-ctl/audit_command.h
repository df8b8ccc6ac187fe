// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// OK if all values are as decided, or will be after the repair; else kDrift.
Status AuditOutcome(const Reply& report, bool repair);

// The outputs of `audit` and `uninstall` for people.
std::string AuditText(const Reply& report);
std::string UninstallText(const Reply& answer, bool applied);

}  // namespace resmgr
