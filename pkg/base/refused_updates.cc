// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/refused_updates.h"

#include "pkg/base/parse.h"

namespace resmgr {

StatusOr<RefusedUpdates> ParseRefusedUpdates(std::string_view text) {
  for (const RefusedUpdates choice : {RefusedUpdates::kWait, RefusedUpdates::kWrite}) {
    if (EqualsIgnoreCase(text, ToString(choice))) return choice;
  }
  return InvalidArgument("\"{}\" is not one of wait, write", Printable(text, 64));
}

std::string_view ToString(RefusedUpdates choice) {
  return choice == RefusedUpdates::kWrite ? "write" : "wait";
}

}  // namespace resmgr
