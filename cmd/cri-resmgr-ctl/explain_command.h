// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/terminal.h"

namespace resmgr {

// The output for people: a single container in full, or several in this style with a line each.
std::string ExplanationText(const Reply& containers, const TableStyle& style = {});

}  // namespace resmgr
