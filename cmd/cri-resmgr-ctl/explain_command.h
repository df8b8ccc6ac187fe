// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/terminal.h"

namespace resmgr {

// The output for people: one container in full, several with a line each, in this style.
std::string ExplanationText(const Reply& containers, const TableStyle& style = {});

}  // namespace resmgr
