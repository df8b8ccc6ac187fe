// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pkg/topology/cpu_set.h"

// Any bytes are either refused, or become a set whose own text gives the same set again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto set = resmgr::CpuSet::Parse(text);
  if (!set.ok()) {
    if (resmgr::Message(set.status()).empty()) std::abort();
    return 0;
  }
  const auto again = resmgr::CpuSet::Parse(set->ToString());
  if (!again.ok() || *again != *set) std::abort();
  return 0;
}
