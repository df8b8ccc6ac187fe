// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace resmgr {

// FNV-1a over numbers: stable between builds and machines, which std::hash is not.
class FingerprintHash {
 public:
  void Add(int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ ^= (static_cast<uint64_t>(number) >> shift) & 0xff;
      value_ *= 0x100000001b3;
    }
  }
  std::string Text() const { return fmt::format("{:016x}", value_); }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace resmgr
