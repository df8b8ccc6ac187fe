// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// Translates the command line of Koordinator's koord-runtime-proxy (versions up to 1.8) for a link
// to cri-resmgr that has this name. Unless a flag says otherwise, hook servers of
// /etc/runtime/hookserver.d are asked and no policy is active. Pure functions.

// Whether the last part of argv[0] is koord-runtime-proxy.
bool IsKoordProgram(std::string_view program);

struct KoordCommandLine {
  std::vector<std::string> arguments{};  // for ParseFlags: argv[0], then flags of cri-resmgr
  std::vector<std::string> warnings{};   // name flags that have no effect, and flags to use instead
  std::string help{};                    // of -help, which is then to be printed; else ""
};

// Flags of cri-resmgr stay as they are. kInvalidArgument: a flag's value is missing or invalid.
StatusOr<KoordCommandLine> TranslateKoordFlags(int argc, const char* const* argv);

}  // namespace resmgr
