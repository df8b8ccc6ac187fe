// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/history_json.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using test::TestNode;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

using enum QosClass;

class HistoryJsonTest : public testing::Test {
 protected:
  StatusOr<OrderedJson> Explain(std::string_view what) {
    return WithRefusals(ExplainJson(node_.manager(), what), history_, node_.manager().snapshot(),
                        what);
  }

  History history_{
      16, [] {
        return std::chrono::system_clock::time_point(std::chrono::milliseconds(1'700'000'000'042));
      }};
  // CPUs 0-7.
  TestNode node_{test::S1Ht(), test::FirstFit, TestNode::Observed(history_)};
};

TEST_F(HistoryJsonTest, HasTheContractsMembers) {
  node_.Run("web", kBurstable, 100);
  node_.Run("db", kBurstable, 100);
  node_.Run("dsp", kGuaranteed, 1000);
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
  const OrderedJson list = HistoryJson(history_, 3);
  EXPECT_EQ(list[0].dump(),
            R"({"time":"2023-11-14T22:13:20.042Z","event":"placed","container":"ns/dsp/dsp",)"
            R"("cpus":"1","mems":"","exclusive":"1","reason":"","error":""})");
  EXPECT_EQ(
      list[1].dump(),
      R"({"time":"2023-11-14T22:13:20.042Z","event":"moved","container":"ns/web/web and 1 more",)"
      R"("cpus":"0,2-7","mems":"","exclusive":"","reason":"for the sake of ns/dsp/dsp","error":""})");
  EXPECT_EQ(list[2]["event"], "refused");
  EXPECT_THAT(list[2]["error"].get<std::string>(), HasSubstr("needs 8 CPUs, 6 are free"));
  EXPECT_EQ(HistoryJson(history_, 100).size(), 5U);
}

TEST_F(HistoryJsonTest, ARefusedContainerIsExplained) {
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 8000).ok());
  for (const char* const what : {"large", "ns/large", "large/large", "ns/large/large"}) {
    const StatusOr<OrderedJson> explained = Explain(what);
    ASSERT_TRUE(explained.ok()) << what << ": " << explained.status();
    ASSERT_EQ(explained->size(), 1U);
    const OrderedJson& object = explained->front();
    EXPECT_EQ(object["state"], "refused");
    EXPECT_EQ(object["namespace"], "ns");
    EXPECT_EQ(object["pod"], "large");
    EXPECT_THAT(object["reason"].get<std::string>(), HasSubstr("needs 8 CPUs, 7 are free"));
    EXPECT_THAT(object["refused"].get<std::string>(),
                testing::StartsWith(object["reason"].get<std::string>() + "; refused at 20"));
    EXPECT_EQ(object["request"], 8000);
    EXPECT_EQ(object["qos"], "Guaranteed");
  }
  EXPECT_EQ(Explain("small").status().code(), StatusCode::kNotFound);
}

TEST_F(HistoryJsonTest, AContainerThatAPluginRefusedIsExplained) {
  CreateRequest request = TestNode::Request(node_.AddPod("app", kGuaranteed), "app", 1000);
  const auto admission = node_.manager().AdmitCreate(std::move(request));
  ASSERT_TRUE(admission.ok());
  node_.manager().CreateFailed(admission->key,
                               FailedPrecondition("plugin \"10-a\" wants to set OciHooks /h"));
  const OrderedJson list = HistoryJson(history_, 1);
  EXPECT_EQ(list[0]["event"], "refused");
  EXPECT_EQ(list[0]["error"], "plugin \"10-a\" wants to set OciHooks /h");
  EXPECT_EQ(list[0]["cpus"], "");
  const StatusOr<OrderedJson> explained = Explain("app");
  ASSERT_TRUE(explained.ok());
  EXPECT_EQ(explained->front()["state"], "refused");
}

// Only the API server bounds names; other clients of the relay need not.
TEST_F(HistoryJsonTest, ARefusedContainerOfALongNameIsExplained) {
  EXPECT_FALSE(node_.Create(std::string(5'000, 'x'), kGuaranteed, 8000).ok());
  const StatusOr<OrderedJson> explained = Explain("");
  ASSERT_TRUE(explained.ok());
  ASSERT_EQ(explained->size(), 1U);
  const OrderedJson& object = explained->front();
  EXPECT_EQ(object["namespace"], "ns");
  EXPECT_THAT(object["pod"].get<std::string>(), MatchesRegex("x+"));
  EXPECT_EQ(object["name"], object["pod"]);
}

TEST_F(HistoryJsonTest, ARefusalIsOverOnceTheContainerIsPlaced) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 7000);
  EXPECT_FALSE(node_.Create("app", kGuaranteed, 2000).ok());
  node_.Stop(dsp);
  node_.Run("app", kGuaranteed, 2000);
  const StatusOr<OrderedJson> explained = Explain("app");
  ASSERT_TRUE(explained.ok());
  ASSERT_EQ(explained->size(), 1U);
  EXPECT_EQ(explained->front()["state"], "running");
  EXPECT_FALSE(explained->front().contains("refused"));
}

TEST_F(HistoryJsonTest, ARefusedUpdateIsToldOfTheContainerThatIsThere) {
  const ContainerId app = node_.Run("app", kGuaranteed, 2000);
  EXPECT_FALSE(node_.manager().AdmitUpdate(app, TestNode::Resources(9000)).ok());
  const StatusOr<OrderedJson> explained = Explain("app");
  ASSERT_TRUE(explained.ok());
  ASSERT_EQ(explained->size(), 1U);
  EXPECT_EQ(explained->front()["state"], "running");
  EXPECT_THAT(explained->front()["refused"].get<std::string>(),
              testing::AllOf(HasSubstr("an update: "), HasSubstr("; refused at ")));
}

}  // namespace
}  // namespace resmgr
