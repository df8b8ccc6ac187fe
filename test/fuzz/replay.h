// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace resmgr::test {

// A fuzz target: the name of its file without _fuzz.cc, and the function that libFuzzer would call.
struct FuzzTarget {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

// All of them; the build writes the list (test/fuzz/CMakeLists.txt).
const std::vector<FuzzTarget>& FuzzTargets();

}  // namespace resmgr::test
