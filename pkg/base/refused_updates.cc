// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/refused_updates.h"

namespace resmgr {

std::string_view ToString(RefusedUpdates choice) {
  return choice == RefusedUpdates::kWrite ? "write" : "wait";
}

}  // namespace resmgr
