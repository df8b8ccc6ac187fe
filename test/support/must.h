// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <utility>

#include "pkg/base/status.h"

namespace resmgr::test {

// The value; an error ends the test with its text. For fixtures: a failed ASSERT in a function
// returns to its caller, which would go on without the program that did not start.
template <typename T>
T Must(StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(Describe(result.status()));
  return *std::move(result);
}

}  // namespace resmgr::test
