// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/commands.h"

#include "cmd/cri-resmgr-ctl/topology_command.h"

namespace resmgr {

CommandList AllCommands() {
  CommandList commands;
  commands.push_back(std::make_unique<TopologyCommand>());
  return commands;
}

}  // namespace resmgr
