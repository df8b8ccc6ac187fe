// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/cmdline/command_document.h"

namespace resmgr {

// Completes a program's commands, the flags of each, and values of flags that are files or one of a
// few words. For bash 4.4 and newer; does not need the package bash-completion.
std::string BashCompletion(const CommandDocument& document);
// A function of zsh's completion system, for a directory of its fpath.
std::string ZshCompletion(const CommandDocument& document);

}  // namespace resmgr
