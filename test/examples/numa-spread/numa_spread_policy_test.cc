// SPDX-License-Identifier: Apache-2.0
#include "test/examples/numa-spread/numa_spread_policy.h"

#include <array>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/plan_check.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using enum QosClass;

class NumaSpreadPolicyTest : public testing::Test {
 protected:
  NumaSpreadPolicyTest() {
    const std::array factories = {NumaSpreadPolicyFactory()};
    StatusOr<std::unique_ptr<Policy>> policy = PolicyRegistry(factories).Create(
        "numa-spread", {machine_, machine_.allowed(), test::Cpus("0"), nullptr});
    EXPECT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
  }

  // Carries a plan out, as the resource manager does: only after it was checked.
  void Apply(const StatusOr<Plan>& plan) {
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Status status = CheckPlan(machine_, snapshot_, *plan);
    ASSERT_TRUE(status.ok()) << status;
    snapshot_.Apply(*plan);
  }
  ContainerKey Create(std::string_view name, int64_t milli_cpu,
                      const Container* predecessor = nullptr) {
    const Container& container = snapshot_.Add(name, kBurstable, milli_cpu);
    Apply(policy_->Allocate(snapshot_, snapshot_.PodOf(container.key), container, predecessor));
    return container.key;
  }
  void Remove(ContainerKey key) {
    snapshot_.Remove(key);
    Apply(policy_->Release(snapshot_, key));
  }
  std::string PoolOf(ContainerKey key) { return snapshot_.At(key).placement.pool; }

  const Machine machine_ = test::U16TwoNodes();  // nodes of CPUs 0-7 and 8-15
  std::unique_ptr<Policy> policy_;
  test::TestSnapshot snapshot_;
};

TEST_F(NumaSpreadPolicyTest, EachContainerGoesToTheNodeWithTheLeastRequestedCpu) {
  const ContainerKey large = Create("large", 3000);
  EXPECT_EQ(PoolOf(large), "NUMA node #0");
  EXPECT_EQ(snapshot_.At(large).placement.cpus, test::Cpus("1-7")) << "CPU 0 is reserved";
  EXPECT_EQ(snapshot_.At(large).placement.mems, NodeSet{0});
  EXPECT_EQ(PoolOf(Create("small", 1000)), "NUMA node #1");
  EXPECT_EQ(PoolOf(Create("medium", 2500)), "NUMA node #1");
  EXPECT_EQ(PoolOf(Create("last", 100)), "NUMA node #0");
}

TEST_F(NumaSpreadPolicyTest, AReleaseGivesTheFormerStateBack) {
  Create("first", 1000);
  const ContainerKey second = Create("second", 1000);
  const std::string pool = PoolOf(second);
  Remove(second);
  EXPECT_EQ(PoolOf(Create("third", 1000)), pool);
  EXPECT_EQ(policy_->Zones(snapshot_)[1].shared_request.value, 1000);
}

TEST_F(NumaSpreadPolicyTest, ANewAttemptStaysOnItsNode) {
  const ContainerKey web = Create("web", 1000);
  Create("other", 500);
  const Container former = snapshot_.At(web);
  snapshot_.Remove(web);
  EXPECT_EQ(PoolOf(Create("web", 1000, &former)), "NUMA node #0");
}

TEST_F(NumaSpreadPolicyTest, AResizeCountsAndMovesNothing) {
  const ContainerKey web = Create("web", 1000);
  Container& container = snapshot_.At(web);
  container.requirements.cpu_request = MilliCpu{4000};
  const StatusOr<Plan> plan = policy_->Update(snapshot_, snapshot_.PodOf(web), container);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->empty());
  EXPECT_EQ(policy_->Zones(snapshot_)[0].shared_request.value, 4000);
}

TEST_F(NumaSpreadPolicyTest, ARestartMovesNothingAndPlacesTheRest) {
  const ContainerKey first = Create("first", 1000);
  const ContainerKey second = Create("second", 1000);
  snapshot_.At(second).placement.pool.clear();  // only the runtime's word on its CPUs is left
  const ContainerKey found = snapshot_.Add("found", kBestEffort, 0).key;
  Apply(policy_->Reconcile(snapshot_));
  EXPECT_EQ(PoolOf(first), "NUMA node #0");
  EXPECT_EQ(PoolOf(second), "NUMA node #1");
  EXPECT_EQ(PoolOf(found), "NUMA node #0");
}

TEST_F(NumaSpreadPolicyTest, ACloneLeavesItsOriginalAsItIs) {
  const ContainerKey web = Create("web", 1000);
  ASSERT_TRUE(policy_->Clone()->Release(snapshot_, web).ok());
  EXPECT_EQ(policy_->Zones(snapshot_)[0].containers, 1);
}

TEST_F(NumaSpreadPolicyTest, WrongOptionsAndTooFewCpusAreErrors) {
  const PolicyFactory factory = NumaSpreadPolicyFactory();
  const StatusOr<ConfigNode> section = ParseYaml("PinMemory: sometimes", "test.yaml");
  ASSERT_TRUE(section.ok());
  const Status wrong = factory.create({machine_, machine_.allowed(), {}, &*section}).status();
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(wrong)), HasSubstr("policy.numa-spread.PinMemory"));
  const Status few = factory.create({machine_, test::Cpus("0"), test::Cpus("0"), nullptr}).status();
  EXPECT_EQ(few.code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resmgr
