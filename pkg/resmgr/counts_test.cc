// SPDX-License-Identifier: Apache-2.0
// The brain counts its acts.
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "pkg/resmgr/resource_manager.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::TestNode;

class CountsTest : public testing::Test {
 protected:
  static ResourceManager::Options Options(Metrics& metrics) {
    ResourceManager::Options options = TestNode::FastOptions();
    options.metrics = &metrics;
    return options;
  }

  // "policy_decisions ok" and so on.
  double Count(const std::string& family, const std::string& result) {
    for (const auto& found : metrics_.collectable()->Collect()) {
      if (found.name != "cri_resmgr_" + family) continue;
      for (const auto& metric : found.metric) {
        if (metric.label.size() == 1 && metric.label[0].value == result) {
          return metric.counter.value;
        }
      }
    }
    ADD_FAILURE() << "no " << family << " " << result;
    return -1;
  }

  Metrics metrics_{"1", {}};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options(metrics_)};
};

TEST_F(CountsTest, Decisions) {
  const ContainerId id = node_.Run("app", QosClass::kGuaranteed, 2000);
  EXPECT_FALSE(node_.Create("large", QosClass::kGuaranteed, 64'000).ok());
  const auto update = node_.manager().AdmitUpdate(id, TestNode::Resources(3000));
  ASSERT_TRUE(update.ok());
  node_.manager().UpdateSucceeded(*update);
  EXPECT_EQ(Count("policy_decisions_total", "ok"), 2);
  EXPECT_EQ(Count("policy_decisions_total", "refused"), 1);
}

TEST_F(CountsTest, UpdatesAndHeldStarts) {
  node_.Run("shared", QosClass::kBurstable, 100);
  const ContainerId app = *node_.Create("app", QosClass::kGuaranteed, 2000);
  std::optional<Status> decided;
  const auto wait =
      node_.manager().AdmitStart(app, [&](const Status& status) { decided = status; });
  EXPECT_EQ(Count("held_starts_total", "waited"), 1);
  node_.runtime.Answer(0, Internal("the disk is on fire"));
  ASSERT_TRUE(node_.AnswerNextList());
  EXPECT_EQ(Count("container_updates_total", "failed"), 1);
  ASSERT_TRUE(node_.RunUntil([&] { return decided.has_value(); }));
  EXPECT_EQ(Count("held_starts_total", "refused"), 1);
  ASSERT_TRUE(node_.RunUntil([&] { return !node_.runtime.updates.empty(); }));
  node_.runtime.Answer(0);
  EXPECT_EQ(Count("container_updates_total", "pushed"), 1);
}

}  // namespace
}  // namespace resmgr
