// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/node_claims.pb.h"
#include "pkg/dra/testing/fake_claims.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/node/agent_claims.h"
#include "pkg/node/dra_reports.h"
#include "pkg/node/host_claims.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The API server is the test.
class LostClaimsTest : public testing::Test {
 protected:
  LostClaimsTest() { Start(); }
  void Start() {
    lost_.reset();
    lost_.emplace(
        LostClaims::Options{.loop = node_.loop(),
                            .manager = [this] { return brain_ ? &node_.manager() : nullptr; },
                            .holder = node_.manager().claims(),
                            .get =
                                [this](const dra::ClaimName& claim, const auto& done) {
                                  asked_.push_back(claim.uid);
                                  open_ = done;
                                },
                            .period = milliseconds(2)});
  }
  void Reserve(const std::string& uid, const std::string& name, int cpus = 2) {
    std::optional<Status> result;
    node_.manager().claims().Reserve(
        {.uid = uid,
         .namespace_name = "ns",
         .name = name,
         .parts = {{.device = "cpu", .cpus = cpus}}},
        [&result](const StatusOr<ClaimGrant>& grant) { result = grant.status(); });
    ASSERT_EQ(result, OkStatus()) << "no container has to leave, and nothing is written";
  }
  // A running container that carries the claim, in a pod of its own.
  ContainerId Carry(const std::string& uid) {
    const PodSandboxId pod = node_.AddPod("carrier", QosClass::kBurstable);
    const CreateRequest request = test::TestNode::Request(pod, "main", 100);
    const StatusOr<Admission> admitted = node_.manager().AdmitCreate(
        CreateRequest(request), ResourceManager::Refusal::kFinal, {uid});
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    if (!admitted.ok()) return {};
    ContainerId id = node_.Created(request, *admitted);
    node_.Start(id);
    return id;
  }
  // So many questions come, and have the answer.
  bool Answers(int questions) {
    for (; questions > 0; --questions) {
      if (!node_.RunUntil([this] { return open_ != nullptr; })) return false;
      std::exchange(open_, nullptr)(answer_);
    }
    return true;
  }
  StatusOr<ClaimGrant> Release(const std::string& what, bool force = false) {
    std::optional<StatusOr<ClaimGrant>> result;
    lost_->Release(what, force, [&result](StatusOr<ClaimGrant> held) { result = std::move(held); });
    EXPECT_TRUE(node_.RunUntil([&result] { return result.has_value(); }));
    return result.value_or(Internal("no answer"));
  }
  static std::string Object(const std::string& uid, const std::string& name) {
    return dra::test::ClaimObject({.uid = uid, .namespace_name = "ns", .name = name}, 2);
  }

  test::TestNode node_{test::S1Ht(), test::FirstFit};
  bool brain_ = true;
  StatusOr<std::string> answer_ = NotFound("the API server answers 404");
  std::vector<std::string> asked_;
  std::function<void(StatusOr<std::string>)> open_;
  std::optional<LostClaims> lost_;
};

TEST_F(LostClaimsTest, AClaimThatTheApiServerLacksTwiceIsAProblem) {
  Reserve("u-1", "fast");
  ASSERT_TRUE(Answers(1));
  EXPECT_THAT(lost_->problems(), IsEmpty())
      << "once may be between the end of the pod and the call";
  ASSERT_TRUE(Answers(1));
  const std::vector<Problem> problems = lost_->problems();
  ASSERT_THAT(problems, SizeIs(1));
  const std::string cpus = node_.manager().held_claims().Cpus().ToString();
  EXPECT_EQ(problems[0].message,
            "claim ns/fast (uid u-1) holds CPUs " + cpus +
                ", and no pod uses it: the API server has no such claim; the kubelet has not asked "
                "for its release");
  EXPECT_EQ(problems[0].next, "cri-resmgr-ctl release-claim u-1");
  EXPECT_THAT(problems[0].objects, ElementsAre("ns/fast"));
  EXPECT_NE(problems[0].since, std::chrono::system_clock::time_point());
  EXPECT_FALSE(node_.manager().held_claims().empty()) << "nothing is released without an order";
}

TEST_F(LostClaimsTest, SoIsOneThatIsReplacedOrNotAllocated) {
  Reserve("u-1", "fast");
  answer_ = Object("u-2", "fast");
  ASSERT_TRUE(Answers(2));
  ASSERT_THAT(lost_->problems(), SizeIs(1));
  EXPECT_THAT(lost_->problems()[0].message, HasSubstr("another claim of this name"));
  answer_ = R"({"metadata":{"namespace":"ns","name":"fast","uid":"u-1"},"status":{}})";
  ASSERT_TRUE(Answers(1));
  EXPECT_THAT(lost_->problems()[0].message, HasSubstr("neither allocated nor reserved"));
  answer_ = Object("u-1", "fast");
  ASSERT_TRUE(Answers(1));
  EXPECT_THAT(lost_->problems(), IsEmpty()) << "it is back";
}

TEST_F(LostClaimsTest, AnErrorTellsNothingAboutAClaim) {
  Reserve("u-1", "fast");
  for (const Status& error :
       {Unavailable("the agent is not reachable"), FailedPrecondition("no agent"),
        MakeStatus(StatusCode::kPermissionDenied, "may not read")}) {
    answer_ = error;
    ASSERT_TRUE(Answers(2));
    EXPECT_THAT(lost_->problems(), IsEmpty()) << error;
  }
  answer_ = NotFound("the API server answers 404");
  ASSERT_TRUE(Answers(2));
  ASSERT_THAT(lost_->problems(), SizeIs(1));
  answer_ = Unavailable("the agent is not reachable");
  ASSERT_TRUE(Answers(2));
  EXPECT_THAT(lost_->problems(), SizeIs(1)) << "what was found stays";
}

TEST_F(LostClaimsTest, OneQuestionIsOpenAtATime) {
  Reserve("u-1", "fast");
  ASSERT_TRUE(node_.RunUntil([this] { return open_ != nullptr; }));
  test::RunFor(node_.loop(), milliseconds(20));
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(LostClaimsTest, ClaimsHaveTheirTurnsThoughOneIsToBeConfirmed) {
  Reserve("u-1", "fast");
  Reserve("u-2", "other");
  ASSERT_TRUE(Answers(4));
  EXPECT_THAT(std::vector(asked_.begin(), asked_.begin() + 4),
              ElementsAre("u-1", "u-2", "u-1", "u-2"));
  EXPECT_THAT(lost_->problems(), SizeIs(2));
}

TEST_F(LostClaimsTest, AClaimThatARunningContainerCarriesIsNotComparedAndNotReleased) {
  Reserve("u-1", "fast");
  const ContainerId carrier = Carry("u-1");
  test::RunFor(node_.loop(), milliseconds(20));
  EXPECT_THAT(asked_, IsEmpty());
  const StatusOr<ClaimGrant> refused = Release("ns/fast", true);
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused.status())),
              HasSubstr("claim ns/fast is in use: ns/carrier/main runs on its CPUs"));
  node_.Stop(carrier);
  ASSERT_TRUE(Answers(2));
  EXPECT_THAT(lost_->problems(), SizeIs(1));
  EXPECT_TRUE(Release("ns/fast").ok());
}

TEST_F(LostClaimsTest, AFindingEndsWhereAContainerTakesTheClaimUp) {
  Reserve("u-1", "fast");
  ASSERT_TRUE(Answers(2));
  ASSERT_THAT(lost_->problems(), SizeIs(1));
  Carry("u-1");
  EXPECT_THAT(lost_->problems(), IsEmpty());
}

TEST_F(LostClaimsTest, AReleaseGivesTheCpusBack) {
  Reserve("u-1", "fast");
  const CpuSet cpus = node_.manager().held_claims().Cpus();
  const StatusOr<ClaimGrant> early = Release("u-1");
  EXPECT_EQ(early.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(early.status())), HasSubstr("-force"));
  ASSERT_TRUE(Answers(2));
  const StatusOr<ClaimGrant> released = Release("u-1");
  ASSERT_TRUE(released.ok()) << released.status();
  EXPECT_EQ(released->All(), cpus);
  EXPECT_TRUE(node_.manager().held_claims().empty());
  EXPECT_THAT(lost_->problems(), IsEmpty());
  EXPECT_EQ(Release("u-1").status().code(), StatusCode::kNotFound);
}

TEST_F(LostClaimsTest, ForceReleasesWhatWasNotCompared) {
  Reserve("u-1", "fast");
  EXPECT_TRUE(Release("ns/fast", true).ok());
}

TEST_F(LostClaimsTest, ANameOfTwoClaimsIsNotEnough) {
  Reserve("u-1", "fast");
  Reserve("u-2", "fast");
  const StatusOr<ClaimGrant> refused = Release("ns/fast", true);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused.status())), HasSubstr("u-1, u-2"));
  EXPECT_TRUE(Release("u-2", true).ok());
  EXPECT_TRUE(Release("ns/fast", true).ok());
}

TEST_F(LostClaimsTest, UnderTheNullPolicyNothingIsComparedOrReleased) {
  Reserve("u-1", "fast");
  brain_ = false;
  test::RunFor(node_.loop(), milliseconds(20));
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_EQ(Release("u-1", true).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(LostClaimsTest, ARestartComparesAnew) {
  Reserve("u-1", "fast");
  ASSERT_TRUE(Answers(2));
  ASSERT_THAT(lost_->problems(), SizeIs(1));
  Start();
  EXPECT_THAT(lost_->problems(), IsEmpty());
  ASSERT_TRUE(Answers(2));
  EXPECT_THAT(lost_->problems(), SizeIs(1));
}

TEST_F(LostClaimsTest, MoreThanAFewAreCounted) {
  for (int i = 0; i < 7; ++i)
    Reserve("u-" + std::to_string(i), "c" + std::to_string(i), 1);
  ASSERT_TRUE(Answers(20));
  ASSERT_THAT(lost_->problems(), SizeIs(6));
  EXPECT_EQ(lost_->problems().back().message, "and 2 more claims like these");
}

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
  EXPECT_THAT(asked_, ElementsAre("default/c", "default/c"));
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
  EXPECT_THAT(claims_.problem()->objects, ElementsAre(socket_));
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

TEST(DeviceReportTest, NamesAreThoseOfTheDriver) {
  const std::vector<dra::NodeDevice> devices = {
      {.node = 1, .package = 0, .cpus = 6, .step = 2, .smt = true}};
  cri_resmgr::v1::ShowDevicesRequest request;
  ASSERT_TRUE(
      request.ParseFromString(DeviceReport({.name = "dra.cpu", .compatible = true}, devices, 7)));
  EXPECT_EQ(request.driver(), "dra.cpu");
  EXPECT_EQ(request.beat(), 7U);
  ASSERT_EQ(request.devices_size(), 1);
  const cri_resmgr::v1::SliceDevice& device = request.devices(0);
  EXPECT_EQ(device.name(), "cpudevnuma001");
  EXPECT_EQ(device.capacity(), "dra.cpu/cpu");
  EXPECT_EQ(device.cpus(), 6);
  EXPECT_EQ(device.step(), 2);
  ASSERT_EQ(device.attributes_size(), 6);
  EXPECT_EQ(device.attributes(0).name(), "resource.kubernetes.io/numaNode");
  EXPECT_EQ(device.attributes(0).number(), 1);
  EXPECT_EQ(device.attributes(1).name(), "dra.cpu/socketID");
  EXPECT_EQ(device.attributes(2).name(), "dra.cpu/numCPUs");
  EXPECT_EQ(device.attributes(2).number(), 6);
  EXPECT_EQ(device.attributes(3).name(), "dra.cpu/smtEnabled");
  EXPECT_TRUE(device.attributes(3).truth());
  EXPECT_EQ(device.attributes(4).name(), "dra.cpu/numaNodeID");
  EXPECT_EQ(device.attributes(4).number(), 1);
  EXPECT_EQ(device.attributes(5).name(), "dra.net/numaNode");
  ASSERT_TRUE(request.ParseFromString(DeviceReport({.name = "cpu.example.com"}, devices, 1)));
  EXPECT_EQ(request.devices(0).name(), "cpu-numa-1");
  EXPECT_EQ(request.devices(0).attributes_size(), 4);
  EXPECT_EQ(request.devices(0).capacity(), "cpu.example.com/cpu");
  ASSERT_TRUE(request.ParseFromString(NoDeviceReport()));
  EXPECT_TRUE(request.absent());
}

TEST(DeviceReportTest, ACacheHasItsNumberAndTheKindOfItsCores) {
  const std::vector<dra::NodeDevice> devices = {
      {.node = 1, .l3_of = 8, .cpus = 4, .kind = CoreKind::kEfficient}};
  cri_resmgr::v1::ShowDevicesRequest request;
  ASSERT_TRUE(request.ParseFromString(DeviceReport({.name = "cpu.example.com"}, devices, 7)));
  const cri_resmgr::v1::SliceDevice& device = request.devices(0);
  EXPECT_EQ(device.name(), "cpu-l3-8");
  ASSERT_EQ(device.attributes_size(), 6);
  EXPECT_EQ(device.attributes(0).number(), 1);
  EXPECT_EQ(device.attributes(4).name(), "cpu.example.com/coreType");
  EXPECT_EQ(device.attributes(4).text(), "e-core");
  EXPECT_EQ(device.attributes(5).name(), "cpu.example.com/cacheL3ID");
  EXPECT_EQ(device.attributes(5).number(), 8);
}

}  // namespace
}  // namespace resmgr
