// SPDX-License-Identifier: Apache-2.0
// Containers that begin with PMEM alone, through the brain: acceptance row test03-coldstart of
// cri-resource-manager, and cases beyond it (restarts, stops, failures).
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/admin/node_json.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/topology_aware_node.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

StringMap Cold(const std::string& types = "dram,pmem") {
  StringMap annotations = {
      {"cold-start.cri-resource-manager.intel.com/container.pc0", "duration: 60s"}};
  if (!types.empty()) annotations.Set("memory-type.cri-resource-manager.intel.com/pod", types);
  return annotations;
}

class ColdStartTest : public testing::Test {
 protected:
  // "pc0" in node 1's pool, whose PMEM is node 7.
  void Run(const StringMap& annotations, int64_t memory = kGiB) {
    node_.MustRun({.name = "p", .milli_cpu = {500}, .memory = memory, .annotations = annotations});
    ASSERT_EQ(node_.Pool("pc0"), "socket #1");
  }

  ManualClock clock_;
  TopologyAwareNode node_{C4Pmem4(),
                          {.section = "{PrivilegedNamespaces: ['*']}", .clock = &clock_}};
};

TEST_F(ColdStartTest, HasPmemAloneUntilItsTimeIsOver) {
  const StringMap deprecated = {
      {"cri-resource-manager.intel.com/cold-start", "pc0: {duration: 60s}"},
      {"cri-resource-manager.intel.com/memory-type", "pc0: dram,pmem"}};
  for (const StringMap& annotations : {Cold(), Cold("mixed"), Cold(""), deprecated}) {
    Run(annotations);
    EXPECT_EQ(node_.MemsInForce("pc0"), "7");
    EXPECT_THAT(node_.Reason("pc0"), HasSubstr("first 60000ms with memory nodes 7 (PMEM) alone"));
    clock_.Advance(milliseconds(59'999));
    EXPECT_EQ(node_.MemsInForce("pc0"), "7");
    clock_.Advance(milliseconds(1));
    EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
    EXPECT_EQ(clock_.timers(), 0U);
    node_.End("pc0");
  }
}

TEST_F(ColdStartTest, CountsFromTheStartAndNotFromTheCreation) {
  const PodSandboxId pod = node_.node().AddPod("p", QosClass::kBurstable);
  Pod annotated = *node_.node().manager().snapshot().FindPod(pod);
  annotated.annotations = {{"cold-start.resource-policy.nri.io", "duration: 60s"}};
  node_.node().manager().PodCreated(annotated);
  const auto id = Must(node_.node().Create(TestNode::Request(pod, "c", 500)));
  const auto mems = [&] { return node_.node().runtime.Find(id)->resources.cpuset_mems; };
  clock_.Advance(seconds(600));
  EXPECT_EQ(mems(), "7");
  node_.node().Start(id);
  clock_.Advance(seconds(60));
  node_.node().runtime.AnswerAll();
  EXPECT_EQ(mems(), "1,7");
}

TEST_F(ColdStartTest, GoesOnWhereItWasAfterARestart) {
  Run(Cold());
  clock_.Advance(seconds(40));
  node_.Restart();
  clock_.Advance(milliseconds(19'999));
  EXPECT_EQ(node_.MemsInForce("pc0"), "7");
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
  // The container is not cold again.
  node_.Restart();
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
  EXPECT_EQ(clock_.timers(), 0U);
}

TEST_F(ColdStartTest, EndsAtOnceWhenItsTimePassedWhileTheDaemonWasAway) {
  Run(Cold());
  // The daemon's timer ends with it.
  clock_.Advance(seconds(59));
  node_.node().runtime.Find(ContainerId(node_.IdOf("pc0")))->started_at =
      clock_.Now() - seconds(3600);
  node_.Restart();
  EXPECT_EQ(node_.MemsInForce("pc0"), "7");
  clock_.Advance(seconds(0));
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
}

TEST_F(ColdStartTest, ALostConnectionDelaysItsEnd) {
  Run(Cold());
  node_.node().manager().RuntimeDisconnected();
  clock_.Advance(seconds(60));
  EXPECT_EQ(node_.MemsInForce("pc0"), "7");
  node_.node().runtime.DropAll();
  node_.node().manager().RuntimeConnected();
  node_.node().runtime.AnswerList();
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
}

TEST_F(ColdStartTest, AFailedUpdateIsTriedAgain) {
  Run(Cold());
  clock_.Advance(seconds(60));
  ASSERT_EQ(node_.node().runtime.updates.size(), 1U);
  node_.node().runtime.Answer(0, Internal("no"));
  EXPECT_TRUE(node_.node().RunUntil([this] { return !node_.node().runtime.updates.empty(); }));
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
}

TEST_F(ColdStartTest, EndsWithTheContainer) {
  Run(Cold());
  EXPECT_EQ(clock_.timers(), 1U);
  node_.End("pc0");
  EXPECT_EQ(clock_.timers(), 0U);
  clock_.Advance(seconds(100));
  EXPECT_TRUE(node_.node().runtime.updates.empty());
}

TEST_F(ColdStartTest, ANewAttemptStartsColdAgain) {
  Run(Cold());
  clock_.Advance(seconds(60));
  ASSERT_EQ(node_.MemsInForce("pc0"), "1,7");
  node_.RunAgain("pc0");
  EXPECT_EQ(node_.MemsInForce("pc0"), "7");
  clock_.Advance(seconds(60));
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
}

TEST_F(ColdStartTest, AResizeNeitherEndsNorRenewsIt) {
  Run(Cold());
  clock_.Advance(seconds(30));
  ASSERT_TRUE(node_.Resize("pc0", 600).ok());
  EXPECT_EQ(node_.MemsInForce("pc0"), "7");
  clock_.Advance(seconds(30));
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
  ASSERT_TRUE(node_.Resize("pc0", 500).ok());
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
}

TEST_F(ColdStartTest, EndsAlsoWhileAnUpdateThatWillFailIsUnderWay) {
  Run(Cold());
  TestNode& node = node_.node();
  const ContainerId id(node_.IdOf("pc0"));
  const auto admission = Must(node.manager().AdmitUpdate(id, TestNode::Resources(600)));
  clock_.Advance(seconds(60));
  node.manager().UpdateFailed(admission);
  clock_.Advance(seconds(0));
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7");
  EXPECT_EQ(node_.Mems("pc0"), "1,7");
}

TEST_F(ColdStartTest, EndsEarlyWhenItsPmemIsNotSafeAnyMore) {
  Run(Cold());
  node_.MustRun({.name = "q",
                 .milli_cpu = {100},
                 .memory = 7 * kGiB / 2,
                 .annotations = {{"memory-type.cri-resource-manager.intel.com", "pmem"},
                                 {"resource-policy.nri.io/affinity",
                                  "qc0: [{scope: {key: namespace, operator: Exists}, match: {key: "
                                  "name, operator: Equals, values: [pc0]}, weight: 9}]"}}});
  ASSERT_EQ(node_.MemsInForce("qc0"), "4-7");
  EXPECT_EQ(node_.MemsInForce("pc0"), "1,7") << "4.5 GiB may lie on node 7 of 4 GiB";
  EXPECT_EQ(clock_.timers(), 0U);
}

TEST_F(ColdStartTest, TellsWhyThereIsNone) {
  struct Case {
    StringMap annotations;
    int64_t memory;
    const char* mems;
    const char* reason;
  };
  StringMap preserved = Cold();
  preserved.Set("memory.preserve.resource-policy.nri.io", "true");
  for (const Case& c :
       {Case{Cold("dram"), kGiB, "1", "no cold start: its memory-type has no PMEM"},
        Case{Cold("pmem"), kGiB, "7", "no cold start: its memory-type has nothing but PMEM"},
        Case{Cold(), 5 * kGiB, "1,7", "no cold start: it needs 5 GiB, and 4 GiB of the PMEM"},
        Case{preserved, kGiB, "", "no cold start: its memory is not pinned"}}) {
    Run(c.annotations, c.memory);
    EXPECT_EQ(node_.MemsInForce("pc0"), c.mems) << c.reason;
    EXPECT_THAT(node_.Reason("pc0"), HasSubstr(c.reason));
    EXPECT_EQ(clock_.timers(), 0U);
    node_.End("pc0");
  }
  TopologyAwareNode dram(N4C16(), {.clock = &clock_});
  dram.MustRun({.name = "p", .milli_cpu = {500}, .annotations = Cold("")});
  EXPECT_THAT(dram.Reason("pc0"), HasSubstr("no cold start: there is no PMEM in its pool"));
}

TEST_F(ColdStartTest, EndsWithItsPolicy) {
  Run(Cold());
  TestNode& node = node_.node();
  std::optional<Status> done;
  node.manager().policy_changes().Set(std::make_unique<FirstFitPolicy>(node.machine()),
                                      [&done](const Status& status) { done = status; });
  EXPECT_EQ(node_.MemsInForce("pc0"), "0-7") << "that policy leaves memory alone";
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->ok()) << *done;
  EXPECT_EQ(clock_.timers(), 0U);
}

TEST_F(ColdStartTest, AChangeOfOptionsLeavesItAlone) {
  Run(Cold());
  TestNode& node = node_.node();
  const auto change = [&node](std::string_view section) {
    const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
    std::optional<Status> done;
    node.manager().policy_changes().Set(
        *TopologyAwarePolicy::Create({.machine = node.machine(),
                                      .available = node.machine().allowed(),
                                      .reserved = CpuSet{0},
                                      .section = &*config}),
        [&done](const Status& status) { done = status; });
    node.runtime.AnswerAll();
    EXPECT_TRUE(done.has_value() && done->ok());
  };
  change("{ColocatePods: true}");
  EXPECT_EQ(node_.MemsInForce("pc0"), "7");
  change("{PinMemory: false}");
  EXPECT_EQ(node_.MemsInForce("pc0"), "0-7");
  change("{}");
  EXPECT_EQ(node_.MemsInForce("pc0"), "0-7") << "what runs does not start any more";
  EXPECT_EQ(clock_.timers(), 0U);
}

TEST_F(ColdStartTest, IsExplained) {
  Run(Cold());
  const auto explain = [this] { return ExplainJson(node_.node().manager(), "p/pc0")->at(0); };
  EXPECT_EQ(explain()["mems"], "7");
  EXPECT_EQ(explain()["coldStartMs"], 60'000);
  clock_.Advance(seconds(60));
  EXPECT_EQ(explain()["mems"], "1,7");
  EXPECT_EQ(explain()["coldStartMs"], 0);
}

TEST_F(ColdStartTest, DoesNotConcernOthers) {
  Run(Cold());
  node_.MustRun({.name = "o", .milli_cpu = {500}, .memory = kGiB});
  const std::string mems = node_.Mems("oc0");
  const size_t updates = node_.node().runtime.history.size();
  clock_.Advance(seconds(60));
  EXPECT_EQ(node_.node().runtime.history.size(), updates + 1);
  EXPECT_THAT(node_.node().runtime.history.back(), HasSubstr("pc0"));
  EXPECT_THAT(node_.node().runtime.history.back(), Not(HasSubstr("cpus")));
  EXPECT_EQ(node_.Mems("oc0"), mems);
}

}  // namespace
}  // namespace resmgr::test
