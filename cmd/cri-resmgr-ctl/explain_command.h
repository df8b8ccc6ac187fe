// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `explain`: why a container runs where it runs.
std::unique_ptr<Command> MakeExplainCommand();

// What it shows for people, of one container in full, of several a line each.
std::string ExplanationText(const Reply& containers);

}  // namespace resmgr
