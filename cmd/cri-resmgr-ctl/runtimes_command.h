// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cmd/cri-resmgr-ctl/daemon_command.h"

namespace resmgr {

// The output for people.
std::string RuntimesText(const Reply& runtimes, const TableStyle& style = {});

}  // namespace resmgr
