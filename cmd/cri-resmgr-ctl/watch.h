// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "pkg/base/status.h"

namespace resmgr {

// Looks every second and shows what is seen whenever it is not what it was before: on a terminal in
// place of the former text, elsewhere below it. Ends with the first look that fails, and when the
// output cannot be written; by Ctrl-C the program ends.
Status Watch(const std::function<StatusOr<std::string>()>& look, std::ostream& out);

}  // namespace resmgr
