// SPDX-License-Identifier: Apache-2.0
// Claims in scenarios: prepared, carried, given back.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/simulator/report.h"
#include "pkg/simulator/testing/simulator_fixture.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SimulatedClaimsTest : public test::SimulatorFixture {
 protected:
  // Allocated on the device of a NUMA node.
  static std::string Claim(std::string_view name, int node, std::string_view cpus,
                           std::string_view parameters = "") {
    const std::string config =
        parameters.empty()
            ? ""
            : fmt::format(
                  ", config: [{{source: FromClaim, opaque: {{driver: cpu.cri-resmgr.intel.com, "
                  "parameters: {{apiVersion: cri-resource-manager.intel.com/v1, kind: CpuClaim, "
                  "{}}}}}}}]",
                  parameters);
    return fmt::format(
        "---\nkind: ResourceClaim\nmetadata: {{name: {}}}\nstatus: {{allocation: {{devices: "
        "{{results: [{{request: r, driver: cpu.cri-resmgr.intel.com, pool: n, device: "
        "cpu-numa-{}, consumedCapacity: {{cpu: {}}}}}]{}}}}}}}\n",
        name, node, cpus, config);
  }
  // Containers "a" and "b" carry the claim, "own" does not.
  static std::string Carrier(std::string_view pod, std::string_view claim,
                             std::string_view containers = "a") {
    std::string all = "{name: own}";
    for (const char name : containers)
      all += fmt::format(", {{name: {}, resources: {{claims: [{{name: x}}]}}}}", name);
    return fmt::format(
        "---\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{resourceClaims: [{{name: x, "
        "resourceClaimName: {}}}], containers: [{}]}}\n",
        pod, claim, all);
  }
};

TEST_F(SimulatedClaimsTest, AClaimTakesCpusOfItsNodeFromSharedContainers) {
  EXPECT_THAT(Run(SharedPod("web") + Claim("fast", 1, "2")),
              ElementsAre("create default/web/main 0-7()",
                          "prepare default/fast 4-5(4-5) default/web/main=0-3,6-7"));
  EXPECT_THAT(last_.reason, HasSubstr("cpu-numa-1: CPUs 4-5"));
  EXPECT_EQ(last_.quota, -1);
}

TEST_F(SimulatedClaimsTest, AContainerThatCarriesItRunsOnItsCpus) {
  EXPECT_THAT(Run(Claim("fast", 1, "2") + Carrier("dsp", "fast")),
              ElementsAre("prepare default/fast 4-5(4-5)", "create default/dsp/own 0-3,6-7()",
                          "create default/dsp/a 4-5(4-5)"));
  EXPECT_THAT(last_.reason, HasSubstr("claim default/fast"));
}

TEST_F(SimulatedClaimsTest, ItGoesBackWithTheLastPodThatCarriesIt) {
  Run(Claim("fast", 1, "2", "shareWithin: pod") + Carrier("dsp", "fast", "ab"));
  EXPECT_EQ(last_.cpus, "4-5") << "two containers of a pod share it";
  EXPECT_THAT(Run("delete: default/dsp\n"),
              ElementsAre("delete default/dsp/own ()", "delete default/dsp/a ()",
                          "delete default/dsp/b ()", "unprepare default/fast ()"));
  EXPECT_TRUE(simulator_->node().Claimed().empty());
}

TEST_F(SimulatedClaimsTest, APodThatComesBackHasItsClaimsPreparedAgain) {
  Run(Claim("fast", 1, "2") + Carrier("dsp", "fast") + "---\ndelete: default/dsp\n");
  EXPECT_THAT(Run(Carrier("dsp", "fast")),
              ElementsAre("prepare default/fast 4-5(4-5)", "create default/dsp/own 0-3,6-7()",
                          "create default/dsp/a 4-5(4-5)"));
}

TEST_F(SimulatedClaimsTest, WithoutSharingASecondContainerIsRefused) {
  EXPECT_THAT(Run(Claim("fast", 1, "2") + Carrier("dsp", "fast", "ab")),
              ElementsAre("prepare default/fast 4-5(4-5)", "create default/dsp/own 0-3,6-7()",
                          "create default/dsp/a 4-5(4-5)", "create default/dsp/b () error"));
  EXPECT_THAT(last_.error, HasSubstr("is in use by container default/dsp/a"));
}

TEST_F(SimulatedClaimsTest, ARefusalTellsNeedFreeAndHolders) {
  EXPECT_THAT(Run(Claim("one", 1, "3") + Claim("two", 1, "2") + Claim("three", 0, "2")),
              ElementsAre("prepare default/one 4-6(4-6)", "prepare default/two () error",
                          "prepare default/three 1-2(1-2)"));
  EXPECT_THAT(effects_[1].error,
              testing::AllOf(HasSubstr("claim default/two: needs 2 exclusive CPUs of NUMA node 1"),
                             HasSubstr("1 that is free"), HasSubstr("default/one")));
}

TEST_F(SimulatedClaimsTest, APodWaitsForItsClaimAndGetsItLater) {
  EXPECT_THAT(Run(Claim("one", 1, "3") + Carrier("first", "one") + Claim("two", 1, "2") +
                  Carrier("second", "two")),
              ElementsAre("prepare default/one 4-6(4-6)", "create default/first/own 0-3,7()",
                          "create default/first/a 4-6(4-6)", "prepare default/two () error",
                          "prepare default/two () error", "create default/second () error"));
  EXPECT_THAT(last_.error, HasSubstr("the pod waits for a claim: claim default/two: needs 2"));
  Run("delete: default/first\n");
  EXPECT_THAT(Run(Carrier("second", "two")),
              ElementsAre("prepare default/two 4-5(4-5)", "create default/second/own 0-3,6-7()",
                          "create default/second/a 4-5(4-5)"));
}

// A fault that the driver finds in an object is why the claim is refused, and no error of the file.
TEST_F(SimulatedClaimsTest, TheDriverSaysWhatItDoesNotServe) {
  Run(Claim("half", 1, "1500m"));
  EXPECT_THAT(last_.error, HasSubstr("are not a whole number"));
  Run(Claim("odd", 1, "2", "coreType: fast"));
  EXPECT_THAT(last_.error, HasSubstr("coreType"));
  Run(Claim("far", 7, "2"));
  EXPECT_THAT(last_.error, HasSubstr("there is no NUMA node 7"));
  Run("kind: ResourceClaim\nmetadata: {name: pending}\n");
  EXPECT_THAT(last_.error, HasSubstr("has no allocation"));
}

TEST_F(SimulatedClaimsTest, ParametersThatCannotBeHadAreNamed) {
  Run(Claim("fast", 1, "2", "coreType: p-core"));
  EXPECT_THAT(last_.error,
              HasSubstr("claim default/fast: device cpu-numa-1: needs 2 CPUs (coreType p-core), "
                        "and there are 0"));
  EXPECT_THAT(Run(Claim("near", 1, "2", "coreType: standard, avoidSiblings: true")),
              ElementsAre("prepare default/near 4-5(4-5)"))
      << "no core has a second thread";
}

TEST_F(SimulatedClaimsTest, ClaimsOfOtherDriversHoldNothingAndStopNoPod) {
  EXPECT_THAT(Run("kind: ResourceClaim\nmetadata: {name: gpu}\nstatus: {allocation: {devices: "
                  "{results: [{driver: gpu.example.com, device: g0, request: r}]}}}\n" +
                  Carrier("dsp", "gpu")),
              ElementsAre("prepare default/gpu ()", "create default/dsp/own 0-7()",
                          "create default/dsp/a 0-7()"));
  EXPECT_EQ(effects_[0].reason, "it has no device of cpu.cri-resmgr.intel.com");
}

TEST_F(SimulatedClaimsTest, TheDriverIsTheConfiguredOne) {
  Start("policy: {Active: static}\ndra: {Compatible: true}");
  EXPECT_THAT(Run("kind: ResourceClaim\nmetadata: {name: c}\nstatus: {allocation: {devices: "
                  "{results: [{driver: dra.cpu, device: cpudevnuma001, request: r, "
                  "consumedCapacity: {dra.cpu/cpu: \"2\"}}]}}}\n"),
              ElementsAre("prepare default/c 4-5(4-5)"));
}

TEST_F(SimulatedClaimsTest, ClaimsOutlastARestartAndAnotherPolicy) {
  Run(Claim("fast", 1, "2") + Carrier("dsp", "fast"));
  for (const char* const change :
       {"restart: relay\n", "config: {policy: {Active: topology-aware}}\n"}) {
    Run(change);
    EXPECT_EQ(last_.error, "") << change;
    for (const StepEffect::Change& moved : last_.changed)
      EXPECT_NE(moved.container, "a") << change;
    EXPECT_EQ(simulator_->node().Claimed(), (CpuSet{4, 5})) << change;
  }
  Run(Claim("fast", 1, "2"));
  EXPECT_EQ(last_.cpus, "4-5") << "the same again";
  EXPECT_EQ(last_.error, "");
}

TEST_F(SimulatedClaimsTest, WithoutAPolicyNoClaimIsHeld) {
  Start("policy: {Active: \"null\"}");
  Run(Claim("fast", 1, "2"));
  EXPECT_THAT(last_.error, HasSubstr("no policy is active that gives exclusive CPUs"));
}

TEST_F(SimulatedClaimsTest, AnotherObjectOfTheNameIsRefusedWhileTheFirstHoldsCpus) {
  Run(Claim("fast", 1, "2"));
  Run("kind: ResourceClaim\nmetadata: {name: fast, uid: other}\n");
  EXPECT_THAT(last_.error, HasSubstr("exists already, with another UID"));
}

// Each claim counts once: one that is refused is tried again when its pod comes.
TEST_F(SimulatedClaimsTest, ARefusedClaimIsCountedOnceAndNotWhereItSucceedsLater) {
  Run(Claim("one", 1, "3") + Carrier("first", "one") + Claim("two", 1, "2") +
      Carrier("second", "two"));
  EXPECT_THAT(Summary(effects_, simulator_->node()),
              HasSubstr("claims         1 granted, 1 refused"));
  Run("delete: default/first\n");
  Run(Carrier("second", "two"));
  EXPECT_THAT(Summary(effects_, simulator_->node()),
              HasSubstr("claims         2 granted, 0 refused"));
}

TEST_F(SimulatedClaimsTest, TheSummaryCountsClaims) {
  Run(Claim("one", 1, "3") + Claim("two", 1, "2") + SharedPod("web"));
  const std::string summary = Summary(effects_, simulator_->node());
  EXPECT_THAT(summary,
              HasSubstr("claims         1 granted, 1 refused; 3 CPUs (4-6) held at the end\n"
                        "exclusive      3 CPUs (4-6)\n"));
  EXPECT_THAT(summary, HasSubstr("refused        0\n"));
}

}  // namespace
}  // namespace resmgr
