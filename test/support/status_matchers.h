// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

}  // namespace resmgr::test
