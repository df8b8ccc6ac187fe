// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "cmd/cri-resmgr-ctl/command.h"

namespace resmgr {

using CommandList = std::vector<std::unique_ptr<Command>>;

// All commands, in the order of the help.
CommandList AllCommands();

// Each is made beside its class.
std::unique_ptr<Command> MakeStatusCommand();
std::unique_ptr<Command> MakePoliciesCommand();
std::unique_ptr<Command> MakeTopologyCommand();
std::unique_ptr<Command> MakePoolsCommand();
std::unique_ptr<Command> MakeContainersCommand();
std::unique_ptr<Command> MakeTopCommand();
std::unique_ptr<Command> MakeCpusCommand();
std::unique_ptr<Command> MakeExplainCommand();
std::unique_ptr<Command> MakeHistoryCommand();
std::unique_ptr<Command> MakePluginsCommand();
std::unique_ptr<Command> MakeRuntimesCommand();
std::unique_ptr<Command> MakeClassesCommand();
std::unique_ptr<Command> MakeAuditCommand();
std::unique_ptr<Command> MakeConfigCommand();
std::unique_ptr<Command> MakeRebalanceCommand();
std::unique_ptr<Command> MakeReleaseClaimCommand();
std::unique_ptr<Command> MakeLogCommand();
std::unique_ptr<Command> MakeDumpCommand();
std::unique_ptr<Command> MakeUninstallCommand();
std::unique_ptr<Command> MakeSimulateCommand();
std::unique_ptr<Command> MakeVersionCommand();
std::unique_ptr<Command> MakeHelpCommand();
std::unique_ptr<Command> MakeCompleteCommand();

}  // namespace resmgr
