// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/default_policy.h"

#include <utility>

#include <gtest/gtest.h>

namespace resmgr::test {

std::unique_ptr<Policy> MakeDefaultPolicy(const PolicyFactory& factory, const Machine& machine) {
  StatusOr<std::unique_ptr<Policy>> policy = factory.create(
      {.machine = machine, .available = machine.allowed(), .reserved = {0}, .section = nullptr});
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

}  // namespace resmgr::test
