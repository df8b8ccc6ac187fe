// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `explain`: tells why a container runs where it runs.
std::unique_ptr<Command> MakeExplainCommand();

// The output for people: one container in full, several with a line each.
std::string ExplanationText(const Reply& containers);

}  // namespace resmgr
