// SPDX-License-Identifier: Apache-2.0
#include "pkg/base/failure_policy.h"

#include "pkg/base/parse.h"

namespace resmgr {

StatusOr<FailurePolicy> ParseFailurePolicy(std::string_view text) {
  for (const FailurePolicy policy : {FailurePolicy::kFail, FailurePolicy::kIgnore}) {
    if (EqualsIgnoreCase(text, ToString(policy))) return policy;
  }
  return InvalidArgument("\"{}\" is not one of fail, ignore", Printable(text, 64));
}

std::string_view ToString(FailurePolicy policy) {
  return policy == FailurePolicy::kFail ? "fail" : "ignore";
}

std::string_view ToString(RefusedUpdates choice) {
  return choice == RefusedUpdates::kWrite ? "write" : "wait";
}

}  // namespace resmgr
