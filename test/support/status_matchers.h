// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "pkg/base/status.h"

namespace resmgr::test {

// All of these take a Status or a StatusOr.
inline const Status& StatusOf(const Status& status) {
  return status;
}
template <typename T>
const Status& StatusOf(const StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << Describe(StatusOf(arg));
  return StatusOf(arg).ok();
}

MATCHER_P(HasCode, code, "has this status code") {
  *result_listener << Describe(StatusOf(arg));
  return StatusOf(arg).code() == code;
}

MATCHER_P2(Fails, code, message_matcher, "fails so") {
  const Status& status = StatusOf(arg);
  *result_listener << Describe(status);
  return status.code() == code && testing::Matches(message_matcher)(std::string(Message(status)));
}

// The value of a call that a test needs; the test fails if the call did.
template <typename T>
T Ok(StatusOr<T> value) {
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *std::move(value) : T();
}

// The value; an error ends the test with the place of the call. Also for fixtures: a failed ASSERT
// in a function returns to its caller, which would go on without the program that did not start.
template <typename T>
T Must(StatusOr<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!result.ok()) {
    // The exception alone would not show what SCOPED_TRACE says.
    ADD_FAILURE_AT(file, line) << Describe(result.status());
    throw std::runtime_error("nothing to go on with");
  }
  return *std::move(result);
}

}  // namespace resmgr::test
