// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/commands.h"

namespace resmgr {

CommandList AllCommands() {
  CommandList commands;
  commands.push_back(MakeStatusCommand());
  commands.push_back(MakePoliciesCommand());
  commands.push_back(MakeTopologyCommand());
  commands.push_back(MakePoolsCommand());
  commands.push_back(MakeContainersCommand());
  commands.push_back(MakeTopCommand());
  commands.push_back(MakeCpusCommand());
  commands.push_back(MakeExplainCommand());
  commands.push_back(MakeHistoryCommand());
  commands.push_back(MakePluginsCommand());
  commands.push_back(MakeRuntimesCommand());
  commands.push_back(MakeClassesCommand());
  commands.push_back(MakeAuditCommand());
  commands.push_back(MakeConfigCommand());
  commands.push_back(MakeRebalanceCommand());
  commands.push_back(MakeReleaseClaimCommand());
  commands.push_back(MakeLogCommand());
  commands.push_back(MakeDumpCommand());
  commands.push_back(MakeUninstallCommand());
  commands.push_back(MakeSimulateCommand());
  commands.push_back(MakeVersionCommand());
  commands.push_back(MakeHelpCommand());
  commands.push_back(MakeCompleteCommand());
  return commands;
}

}  // namespace resmgr
