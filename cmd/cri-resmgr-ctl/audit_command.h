// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `audit`: what containers really have against what was decided.
std::unique_ptr<Command> MakeAuditCommand();
// `uninstall`: containers get back what their own requests ask for.
std::unique_ptr<Command> MakeUninstallCommand();

// What they show for people.
std::string AuditText(const Reply& report);
std::string UninstallText(const Reply& answer, bool applied);

}  // namespace resmgr
