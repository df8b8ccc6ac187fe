// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// The command line of Koordinator's koord-runtime-proxy, for a link of that name to cri-resmgr:
// its flags (those of the versions up to 1.8) in ours. Without a flag that says otherwise hook
// servers of /etc/runtime/hookserver.d are asked, and no policy is active. Pure functions.

inline constexpr std::string_view kKoordProgram = "koord-runtime-proxy";

// Whether the program was started by that name: by the last part of argv[0].
bool IsKoordProgram(std::string_view program);

struct KoordCommandLine {
  std::vector<std::string> arguments;  // for ParseFlags: argv[0], then flags of cri-resmgr
  std::vector<std::string> warnings;   // flags without a meaning here, and what to use
};

// Flags of cri-resmgr among them stay as they are. InvalidArgument: the value of a flag is missing
// or none that it can have.
StatusOr<KoordCommandLine> TranslateKoordFlags(int argc, const char* const* argv);

}  // namespace resmgr
