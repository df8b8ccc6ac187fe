// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pkg/base/status.h"
#include "pkg/simulator/scenario.h"

namespace resmgr {

// Whether the text begins with the header of a recording.
bool IsRecording(std::string_view text);

// The calls of a recording, in the order of their ends. Errors are those of ReadScenario.
StatusOr<Scenario> ReadRecording(std::string_view text, std::string_view source);

}  // namespace resmgr
