// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string_view>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/status.h"
#include "pkg/cmdline/command_document.h"

namespace resmgr {

// 0 for success, 1 for usage and configuration, 2 for the environment (something required is
// missing), 3 for kDrift (commands.h) and for a bug.
int ExitCodeOf(const Status& status);

// The error about a command of this name, with the closest one.
Status UnknownCommand(const CommandList& commands, std::string_view name);

// The help of one command, and of the program with all of its commands.
CommandDocument DocumentOf(Command& command);
CommandDocument ProgramDocument(const CommandList& commands);

// Runs the command that the arguments name and returns the exit code. Results and help go to `out`,
// an error goes to `err` as one line.
int RunCli(int argc, const char* const* argv, std::string_view version, const CommandList& commands,
           std::ostream& out, std::ostream& err);

}  // namespace resmgr
