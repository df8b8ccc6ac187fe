// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/lost_claims.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/dra/testing/fake_claims.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/resmgr/testing/test_node.h"
#include "test/support/machines/machines.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

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
    const ContainerId id = node_.Created(request, *admitted);
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

}  // namespace
}  // namespace resmgr
