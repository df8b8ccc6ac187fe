// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/kube/quantity.h"

// An accepted quantity is never negative, and milli-CPUs survive being written and read again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using resmgr::FormatMilliCpu;
  using resmgr::ParseBytes;
  using resmgr::ParseMilliCpu;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = ParseBytes(text);
  if (bytes.ok() && bytes->value < 0) std::abort();
  const auto milli = ParseMilliCpu(text);
  if (!milli.ok()) return 0;
  if (milli->value < 0) std::abort();
  const auto again = ParseMilliCpu(FormatMilliCpu(*milli));
  if (!again.ok() || *again != *milli) std::abort();
  // A thousandth is never more than the whole, and rounding goes up.
  if (bytes.ok() && bytes->value != milli->value / 1000 + (milli->value % 1000 == 0 ? 0 : 1)) {
    std::abort();
  }
  return 0;
}
