// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// `runtimes`: lists the runtimes behind the relay.
std::unique_ptr<Command> MakeRuntimesCommand();

// The output for people.
std::string RuntimesText(const Reply& runtimes, const TableStyle& style = {});

}  // namespace resmgr
