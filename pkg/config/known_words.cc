// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/known_words.h"

namespace resmgr {

Status CheckClassName(std::string_view name) {
  constexpr size_t kLongest = 63;
  if (!name.empty() && name.size() <= kLongest && IsPlainAscii(name)) return OkStatus();
  return InvalidArgument("\"{}\" can be no name of a class", Printable(name, 64));
}

}  // namespace resmgr
