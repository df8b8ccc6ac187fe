// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

// A node with the tests' own policy.
class ManagerFixture : public testing::Test {
 protected:
  FirstFitPolicy& policy() { return static_cast<FirstFitPolicy&>(node_.policy()); }
  FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }

  // CPUs 0-7.
  TestNode node_{S1Ht(), FirstFit};
};

}  // namespace resmgr::test
