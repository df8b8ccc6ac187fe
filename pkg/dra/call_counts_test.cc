// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/api/dra.pb.h"
#include "pkg/dra/dra_service.h"

namespace resmgr::dra {
namespace {

namespace api = k8s::io::kubelet::pkg::apis::dra::v1;

class CallCountsTest : public testing::Test {
 protected:
  // Calls the counted method, behind which this answer waits, and lets it come.
  StatusOr<std::string> Call(const std::string& path, const StatusOr<std::string>& answer) {
    UnaryServer::Reply held;
    UnaryServer::Methods methods = {
        {path, [&held](const std::string&, const UnaryServer::Reply& reply) { held = reply; }}};
    methods = WithCounts(std::move(methods), loop_,
                         [this](const AnsweredCall& call) { calls_.push_back(call); });
    StatusOr<std::string> told = Internal("no answer");
    methods.at(path)("", [&told](StatusOr<std::string> reply) { told = std::move(reply); });
    EXPECT_TRUE(calls_.empty()) << "it is not answered yet";
    held(answer);
    return told;
  }

  EventLoop loop_;
  std::vector<AnsweredCall> calls_;
};

TEST_F(CallCountsTest, EachClaimOfAnAnswerCounts) {
  api::NodePrepareResourcesResponse response;
  (*response.mutable_claims())["a"].add_devices();
  (*response.mutable_claims())["b"].set_error("no room");
  (*response.mutable_claims())["c"];
  const std::string answer = response.SerializeAsString();
  EXPECT_EQ(Call("/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", answer).value(),
            answer);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_TRUE(calls_[0].prepare);
  EXPECT_EQ(calls_[0].ok, 2U);
  EXPECT_EQ(calls_[0].failed, 1U);
  EXPECT_GE(calls_[0].took.count(), 0);
}

TEST_F(CallCountsTest, ReleasesAreCountedApart) {
  api::NodeUnprepareResourcesResponse response;
  (*response.mutable_claims())["a"];
  (void)Call("/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
             response.SerializeAsString());
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_FALSE(calls_[0].prepare);
  EXPECT_EQ(calls_[0].ok, 1U);
}

TEST_F(CallCountsTest, ACallThatIsRefusedAsAWholeIsOneFailure) {
  const auto answer = Call("/v1.DRAPlugin/NodePrepareResources", InvalidArgument("too many"));
  EXPECT_EQ(answer.status().code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(calls_.size(), 1U);
  EXPECT_EQ(calls_[0].failed, 1U);
}

TEST_F(CallCountsTest, OtherMethodsAreNotCounted) {
  (void)Call("/pluginregistration.Registration/GetInfo", std::string("info"));
  EXPECT_TRUE(calls_.empty());
}

}  // namespace
}  // namespace resmgr::dra
