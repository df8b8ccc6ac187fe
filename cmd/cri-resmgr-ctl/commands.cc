// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/commands.h"

#include "cmd/cri-resmgr-ctl/audit_command.h"
#include "cmd/cri-resmgr-ctl/classes_command.h"
#include "cmd/cri-resmgr-ctl/containers_command.h"
#include "cmd/cri-resmgr-ctl/control_commands.h"
#include "cmd/cri-resmgr-ctl/dump_command.h"
#include "cmd/cri-resmgr-ctl/explain_command.h"
#include "cmd/cri-resmgr-ctl/history_command.h"
#include "cmd/cri-resmgr-ctl/node_commands.h"
#include "cmd/cri-resmgr-ctl/plugins_command.h"
#include "cmd/cri-resmgr-ctl/program_commands.h"
#include "cmd/cri-resmgr-ctl/runtimes_command.h"
#include "cmd/cri-resmgr-ctl/simulate_command.h"
#include "cmd/cri-resmgr-ctl/status_command.h"
#include "cmd/cri-resmgr-ctl/top_command.h"
#include "cmd/cri-resmgr-ctl/topology_command.h"

namespace resmgr {

CommandList AllCommands() {
  CommandList commands;
  commands.push_back(MakeStatusCommand());
  commands.push_back(MakePoliciesCommand());
  commands.push_back(std::make_unique<TopologyCommand>());
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
  commands.push_back(MakeLogCommand());
  commands.push_back(MakeDumpCommand());
  commands.push_back(MakeUninstallCommand());
  commands.push_back(std::make_unique<SimulateCommand>());
  commands.push_back(MakeVersionCommand());
  commands.push_back(MakeHelpCommand());
  commands.push_back(MakeCompleteCommand());
  return commands;
}

}  // namespace resmgr
