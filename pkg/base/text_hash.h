// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "pkg/base/ids.h"

namespace resmgr {

// XXH3 of a text, for hash tables by ids of the runtime: for their 64 characters it costs a third
// of the tables' default. Not for hashes that must be equal on another machine.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const;
  template <typename Tag>
  size_t operator()(const Id<Tag>& id) const {
    return (*this)(id.value());
  }
};

}  // namespace resmgr
