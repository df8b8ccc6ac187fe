// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/config/command_document.h"

namespace resmgr {

// What a shell completes a program by: its commands, the flags of each, and the values of flags
// where these are files or a few words. Bash 4.4 and newer, without the package bash-completion.
std::string BashCompletion(const CommandDocument& document);
// A function of zsh's completion system, for a directory of its fpath.
std::string ZshCompletion(const CommandDocument& document);

}  // namespace resmgr
