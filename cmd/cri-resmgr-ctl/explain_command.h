// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cmd/cri-resmgr-ctl/command.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/table.h"

namespace resmgr {

// `explain`: tells why a container runs where it runs.
std::unique_ptr<Command> MakeExplainCommand();

// The output for people: one container in full, several with a line each, in this style.
std::string ExplanationText(const Reply& containers, const TableStyle& style = {});

}  // namespace resmgr
