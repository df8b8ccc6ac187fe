// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_claims.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/node_claims.pb.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using testing::HasSubstr;

class AgentClaimsTest : public testing::Test {
 protected:
  void StartAgent() {
    agent_.reset();
    auto server =
        UnaryServer::Create(loop_, flushes_, socket_,
                            {{"/cri_resmgr.v1.NodeClaims/GetClaim",
                              [this](const std::string& message, const UnaryServer::Reply& reply) {
                                cri_resmgr::v1::GetClaimRequest request;
                                EXPECT_TRUE(request.ParseFromString(message));
                                asked_.push_back(request.claim_namespace() + "/" + request.claim());
                                if (hangs_) return;
                                if (!answer_.ok()) return reply(answer_);
                                cri_resmgr::v1::GetClaimReply answer;
                                answer.set_claim("{}");
                                reply(answer.SerializeAsString());
                              }}});
    ASSERT_TRUE(server.ok()) << server.status();
    agent_ = *std::move(server);
  }
  StatusOr<std::string> Get() {
    std::optional<StatusOr<std::string>> result;
    claims_.Get({.uid = "u", .namespace_name = "default", .name = "c"},
                [&result](StatusOr<std::string> object) { result = std::move(object); });
    EXPECT_TRUE(RunUntil(loop_, [&result] { return result.has_value(); }));
    return result.value_or(Internal("no answer"));
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("agent.sock");
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  std::vector<std::string> asked_;
  Status answer_;
  bool hangs_ = false;
  std::unique_ptr<UnaryServer> agent_;
  AgentClaims claims_{loop_, flushes_, socket_, std::chrono::milliseconds(100)};
};

TEST_F(AgentClaimsTest, AsksTheAgent) {
  StartAgent();
  EXPECT_EQ(Get().value(), "{}");
  EXPECT_EQ(Get().value(), "{}");
  EXPECT_THAT(asked_, testing::ElementsAre("default/c", "default/c"));
  answer_ = NotFound("no such claim");
  EXPECT_EQ(Get().status().code(), StatusCode::kNotFound);
  answer_ = Unavailable("connection to the API server refused");
  EXPECT_THAT(std::string(Message(Get().status())), HasSubstr("API server refused"));
  EXPECT_EQ(claims_.problem(), std::nullopt) << "the agent is there";
}

TEST_F(AgentClaimsTest, D15AnAgentThatIsBackIsAskedAtOnce) {
  EXPECT_THAT(std::string(Message(Get().status())), HasSubstr("the agent is not reachable"));
  ASSERT_TRUE(claims_.problem().has_value());
  EXPECT_EQ(claims_.problem()->kind, "socket");
  EXPECT_THAT(claims_.problem()->objects, testing::ElementsAre(socket_));
  StartAgent();
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(claims_.problem(), std::nullopt);
  StartAgent();
  bool again = false;
  for (int tries = 0; tries < 10 && !again; ++tries)
    again = Get().ok();
  EXPECT_TRUE(again) << "the next agent, too";
}

TEST_F(AgentClaimsTest, AHungAgentIsNotReachable) {
  StartAgent();
  hangs_ = true;
  EXPECT_EQ(Get().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(claims_.problem().has_value());
  hangs_ = false;
  EXPECT_TRUE(Get().ok()) << "over another connection";
}

TEST_F(AgentClaimsTest, WithoutAnAgentItSaysSo) {
  AgentClaims none(loop_, flushes_, "");
  std::optional<Status> result;
  none.Get({.uid = "u", .namespace_name = "default", .name = "c"},
           [&result](const StatusOr<std::string>& object) { result = object.status(); });
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(std::string(Message(*result)), HasSubstr("-agent-socket"));
}

}  // namespace
}  // namespace resmgr
