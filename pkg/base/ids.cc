// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/ids.h"

// The algorithm itself, without the library: it inlines well.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace resmgr {

size_t TextHash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace resmgr
