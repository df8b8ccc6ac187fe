// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// The known name that `given` most probably means: a few letters away, without regard to case, or
// the only one that begins with it. Empty if no name is close enough.
std::string_view ClosestName(std::string_view given, const std::vector<std::string_view>& known);

// `; did you mean PREFIXname?` for the end of a message, or "".
std::string DidYouMean(std::string_view given, const std::vector<std::string_view>& known,
                       std::string_view prefix = "");

}  // namespace resmgr
