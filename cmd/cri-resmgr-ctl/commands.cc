// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/commands.h"

namespace resmgr {

CommandList AllCommands() {
  CommandList commands;
  for (const auto add : {AddStatusCommand, AddPoliciesCommand, AddTopologyCommand, AddPoolsCommand,
                         AddContainersCommand, AddTopCommands, AddExplainCommand, AddHistoryCommand,
                         AddStageCommands, AddAuditCommand, AddControlCommands, AddDumpCommand,
                         AddUninstallCommand, AddSimulateCommand, AddProgramCommands})
    add(commands);
  return commands;
}

}  // namespace resmgr
