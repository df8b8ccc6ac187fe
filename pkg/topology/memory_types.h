// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Sets of types of memory, with a bit for each.
using MemoryTypes = unsigned;

inline constexpr std::array kMemoryTypes = {MemoryType::kDram, MemoryType::kPmem, MemoryType::kHbm};

constexpr MemoryTypes BitOf(MemoryType type) {
  return 1U << static_cast<unsigned>(type);
}

// The inverse of ToString, in upper or lower case and with white space around; nullopt for other
// words.
inline std::optional<MemoryType> ParseMemoryType(std::string_view text) {
  for (const MemoryType type : kMemoryTypes)
    if (EqualsIgnoreCase(Trim(text), ToString(type))) return type;
  return std::nullopt;
}

}  // namespace resmgr
