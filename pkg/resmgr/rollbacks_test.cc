// SPDX-License-Identifier: Apache-2.0
// Decisions that are taken back after they were sent to the runtime, and their bindings.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;

using enum QosClass;

// The policy binds no memory.
class RollbackTest : public testing::Test {
 protected:
  RollbackTest() {
    node_.KeepState(files_);
    web_ = node_.Run("web", kBurstable, 100);
    other_ = node_.Run("other", kBurstable, 100);
    runtime().AnswerAll();
  }

  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  ResourceManager& manager() { return node_.manager(); }
  std::optional<NodeSet> MemsOf(const ContainerId& id) { return node_.Known(id)->placement.mems; }
  std::string MemsInForce(const ContainerId& id) {
    return runtime().Find(id)->resources.cpuset_mems.value_or("");
  }

  // The plan binds the memory of the container to node 0.
  void Bind(Plan& plan, const ContainerId& id) {
    const Container& container = *node_.Known(id);
    Placement next = plan.NewPlacement(container).value_or(container.placement);
    next.mems = NodeSet{0};
    std::erase_if(plan.changes, [&](const auto& change) { return change.key == container.key; });
    plan.Change(container.key) = std::move(next);
  }
  void Settle() {
    ASSERT_TRUE(node_.RunUntil([this] {
      if (!runtime().lists.empty()) runtime().AnswerList();
      runtime().AnswerAll();
      return manager().Settled(node_.Known(web_)->key) &&
             manager().Settled(node_.Known(other_)->key);
    }));
  }
  void ExpectARestartDecidesTheSame() {
    const std::optional<NodeSet> before = MemsOf(web_);
    const std::string in_force = MemsInForce(web_);
    node_.FlushState();
    node_.Restart();
    EXPECT_EQ(MemsOf(web_), before);
    Settle();
    EXPECT_EQ(MemsInForce(web_), in_force);
  }

  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  TestNode node_{test::M80(),          // memory nodes 0-3
                 test::FirstFit};
  ContainerId web_;
  ContainerId other_;
};

TEST_F(RollbackTest, AnAbortedChangeOfThePolicyLeavesNoMemoryBound) {
  auto next = std::make_unique<FirstFitPolicy>(node_.machine());
  next->spoil = [this](Plan& plan) {
    Bind(plan, web_);
    Bind(plan, other_);
  };
  std::optional<Status> outcome;
  manager().SetPolicy(std::move(next), [&outcome](const Status& status) { outcome = status; });
  ASSERT_EQ(runtime().updates.size(), size_t{2});
  ASSERT_EQ(runtime().updates[0].id, web_);
  runtime().Answer(0);
  ASSERT_EQ(MemsInForce(web_), "0");
  runtime().Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AnswerNextList());
  ASSERT_TRUE(outcome.has_value());
  ASSERT_EQ(outcome->code(), StatusCode::kAborted);
  EXPECT_EQ(MemsOf(web_), node_.machine().allowed_nodes());
  Settle();
  EXPECT_EQ(MemsInForce(web_), "0-3");
  ExpectARestartDecidesTheSame();
}

TEST_F(RollbackTest, AnUpdateThatFailedLeavesNoMemoryBound) {
  auto& policy = static_cast<FirstFitPolicy&>(node_.policy());
  policy.spoil = [this](Plan& plan) { Bind(plan, web_); };
  const auto admission = manager().AdmitUpdate(web_, TestNode::Resources(700));
  ASSERT_TRUE(admission.ok()) << admission.status();
  policy.spoil = nullptr;
  ASSERT_EQ(admission->adjustment.mems, NodeSet{0});
  runtime().Apply(web_, admission->adjustment);
  manager().UpdateFailed(*admission);
  EXPECT_EQ(MemsOf(web_), node_.machine().allowed_nodes());
  Settle();
  EXPECT_EQ(MemsInForce(web_), "0-3");
  ExpectARestartDecidesTheSame();
}

}  // namespace
}  // namespace resmgr
