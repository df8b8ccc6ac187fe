// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <gmock/gmock.h>

#include "pkg/base/status.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {

// The value of a call that a test needs; the test fails if the call did.
template <typename T>
T Ok(StatusOr<T> value) {
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *std::move(value) : T();
}

}  // namespace resmgr::test
