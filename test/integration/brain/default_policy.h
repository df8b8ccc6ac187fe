// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/policy/registry.h"
#include "pkg/topology/machine.h"

namespace resmgr::test {

// The policy with its default options, on all CPUs of the machine, of which CPU 0 is reserved.
inline std::unique_ptr<Policy> MakeDefaultPolicy(const PolicyFactory& factory,
                                                 const Machine& machine) {
  StatusOr<std::unique_ptr<Policy>> policy = factory.create(
      {.machine = machine, .available = machine.allowed(), .reserved = {0}, .section = nullptr});
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

}  // namespace resmgr::test
