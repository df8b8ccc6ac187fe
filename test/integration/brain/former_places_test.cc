// SPDX-License-Identifier: Apache-2.0
// Containers that are to get a former place back, under a policy whose pools are kept apart.
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/resmgr/testing/test_node.h"
#include "policies/balloons/balloons_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using enum QosClass;

// A balloon for each container.
std::unique_ptr<Policy> Balloons(const Machine& machine) {
  const ConfigNode section = Must(ParseYaml(
      "balloonTypes: [{name: own, namespaces: ['*'], preferNewBalloons: true}]", "test.yaml"));
  return Must(BalloonsPolicyFactory().create(
      {.machine = machine, .available = machine.allowed(), .reserved = {0}, .section = &section}));
}

// All CPUs of the node are taken: twelve by others, of which one is reserved, and four by "x".
class FormerPlacesTest : public testing::Test {
 protected:
  FormerPlacesTest() {
    x_ = node_.Run("x", kBurstable, 4000);
    node_.Run("others", kBurstable, 11'000);
    node_.runtime.AnswerAll();
  }
  CpuSet SetOf(const ContainerId& id) { return node_.Known(id)->placement.cpus.value_or(CpuSet()); }

  TestNode node_{N4C16(), Balloons};
  ContainerId x_;
};

TEST_F(FormerPlacesTest, AFailedUpdateRestoresThePlace) {
  const CpuSet before = SetOf(x_);
  ASSERT_EQ(before.size(), 4);
  const Admission shrunk = Must(node_.manager().AdmitUpdate(x_, TestNode::Resources(2000)));
  ASSERT_EQ(SetOf(x_).size(), 2);
  node_.manager().UpdateFailed(shrunk);
  EXPECT_EQ(SetOf(x_), before);
}

TEST_F(FormerPlacesTest, AFailedUpdateTakesNoCpusThatABalloonGotMeanwhile) {
  const Admission shrunk = Must(node_.manager().AdmitUpdate(x_, TestNode::Resources(2000)));
  const CpuSet left = SetOf(x_);
  const ContainerId z = node_.Run("z", kBurstable, 2000);
  const CpuSet own = SetOf(z);
  ASSERT_EQ(own.size(), 2);
  node_.manager().UpdateFailed(shrunk);
  EXPECT_EQ(SetOf(z), own);
  EXPECT_EQ(SetOf(x_), left);
  EXPECT_EQ(node_.Known(x_)->requirements.cpu_request.value, 4000);
  // It gets what becomes free.
  node_.Stop(z);
  EXPECT_EQ(SetOf(x_), left | own);
}

}  // namespace
}  // namespace resmgr::test
