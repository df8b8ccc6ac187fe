// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace resmgr::ttrpc {

// Four bytes in network byte order.
inline void PutUint32(uint32_t value, char* at) {
  at[0] = static_cast<char>(value >> 24);
  at[1] = static_cast<char>(value >> 16 & 0xff);
  at[2] = static_cast<char>(value >> 8 & 0xff);
  at[3] = static_cast<char>(value & 0xff);
}

inline uint32_t GetUint32(const char* at) {
  const auto byte = [at](int i) { return uint32_t{static_cast<uint8_t>(at[i])}; };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

}  // namespace resmgr::ttrpc
