// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// The known name that `given` most probably meant: few letters away, without regard to case, or the
// only one that it begins. Empty when nothing is near enough to be worth a hint.
std::string_view ClosestName(std::string_view given, const std::vector<std::string_view>& known);

// `; did you mean PREFIXname?` for the end of a message, or "".
std::string DidYouMean(std::string_view given, const std::vector<std::string_view>& known,
                       std::string_view prefix = "");

}  // namespace resmgr
