// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `audit`: compares the containers' real resources with the decided ones.
std::unique_ptr<Command> MakeAuditCommand();
// `uninstall`: gives containers back the resources of their own requests.
std::unique_ptr<Command> MakeUninstallCommand();

// Whether all is as decided or, after a repair, will be; kDrift: no.
Status AuditOutcome(const Reply& report, bool repair);

// The output of both commands for people.
std::string AuditText(const Reply& report);
std::string UninstallText(const Reply& answer, bool applied);

}  // namespace resmgr
