// SPDX-License-Identifier: Apache-2.0
#include "pkg/kubelet/pod_resources.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/fake_kubelet/fake_kubelet.h"
#include "test/support/raw_http2/raw_http2.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::FakeKubelet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNull;
using testing::NotNull;
using testing::SizeIs;

const NodeSet kTwoNodes = {0, 1};

class PodResourcesTest : public testing::Test {
 protected:
  PodResourcesTest() {
    pod_.namespace_name = "ns";
    pod_.name = "pod";
  }

  void StartKubelet(FakeKubelet::Get get = FakeKubelet::Get::kThere) {
    auto kubelet = FakeKubelet::Start(socket_, get);
    ASSERT_TRUE(kubelet.ok()) << kubelet.status();
    kubelet_ = *std::move(kubelet);
    kubelet_->Give("ns", "other", "main", {{"vendor.com/gpu", {"g0"}, {0}}});
    kubelet_->Give("ns", "pod", "main", {{"vendor.com/gpu", {"g1"}, {1}}});
  }
  PodResources::Options Options(milliseconds timeout = milliseconds(10'000)) {
    return {.loop = loop_,
            .server = {.socket = socket_, .nodes = kTwoNodes, .timeout = timeout},
            .look_again = milliseconds(20)};
  }
  // The sources of the hints that the container gets; nullopt: nothing is asked.
  std::optional<std::vector<std::string>> Hints(PodResources& resources) {
    std::vector<std::string> sources;
    bool answered = false;
    const auto question = resources.Ask(pod_, "main", [&](const HintFinder::Hints& hints) {
      for (const LocalityHint& hint : hints)
        sources.push_back(hint.source + "=" + hint.nodes.ToString());
      answered = true;
    });
    if (question == nullptr) return std::nullopt;
    EXPECT_TRUE(test::RunUntil(loop_, [&] { return answered; }));
    return sources;
  }
  bool Becomes(PodResources& resources, size_t problems) {
    return test::RunUntil(loop_, [&] { return resources.problems().size() == problems; });
  }

  const TempDir directory_;
  const std::string socket_ = directory_.File("kubelet.sock");
  const std::vector<std::string> gpu_ = {"pod-resources podresourceapi:vendor.com/gpu=1"};
  Pod pod_;
  std::unique_ptr<FakeKubelet> kubelet_;
  EventLoop loop_;
};

TEST_F(PodResourcesTest, GetTellsTheDevicesOfOnePod) {
  StartKubelet();
  PodResources resources(Options());
  EXPECT_EQ(Hints(resources), gpu_);
  EXPECT_EQ(kubelet_->lists(), 0);
}

TEST_F(PodResourcesTest, ListIsAskedWhereThereIsNoGet) {
  for (const FakeKubelet::Get get : {FakeKubelet::Get::kMissing, FakeKubelet::Get::kDisabled}) {
    kubelet_.reset();
    StartKubelet(get);
    PodResources resources(Options());
    resources.SetWanted(true);
    EXPECT_EQ(Hints(resources), gpu_);
    EXPECT_GE(kubelet_->lists(), 1);
    EXPECT_THAT(resources.problems(), IsEmpty());
  }
}

// Kubelets take ten calls at once, and a hundred in a second.
TEST_F(PodResourcesTest, KubeletThatHasTooManyCallsIsAskedAgain) {
  for (const FakeKubelet::Get get : {FakeKubelet::Get::kThere, FakeKubelet::Get::kMissing}) {
    kubelet_.reset();
    StartKubelet(get);
    kubelet_->RefuseNext(2);
    PodResources resources(Options());
    EXPECT_EQ(Hints(resources), gpu_);
    EXPECT_EQ(kubelet_->gets() + kubelet_->lists(), 3);
  }
}

TEST_F(PodResourcesTest, KubeletThatAlwaysHasTooManyCallsIsAProblem) {
  StartKubelet();
  kubelet_->RefuseNext(1'000'000);
  PodResources resources(Options(milliseconds(100)));
  resources.SetWanted(true);
  EXPECT_EQ(Hints(resources), std::vector<std::string>());
  EXPECT_TRUE(Becomes(resources, 1));
}

// As at a boot: kubelet and threads have turns for some of the containers only.
TEST_F(PodResourcesTest, TooManyContainersAtOnceAreNoHungKubelet) {
  StartKubelet();
  kubelet_->RefuseNext(1'000'000);
  PodResources resources(Options(milliseconds(100)));
  size_t answered = 0;
  std::vector<std::unique_ptr<HintFinder::Question>> questions;
  for (int i = 0; i < 10; ++i) {
    questions.push_back(resources.Ask(pod_, "main", [&](const HintFinder::Hints&) { ++answered; }));
    ASSERT_THAT(questions.back(), NotNull());
  }
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return answered == questions.size(); }));
  kubelet_->RefuseNext(0);
  EXPECT_EQ(Hints(resources), gpu_);
}

// Other clients of the runtime make pods, too.
TEST_F(PodResourcesTest, PodThatTheKubeletDoesNotKnowIsNoProblem) {
  StartKubelet();
  PodResources resources(Options());
  resources.SetWanted(true);
  pod_.name = "unknown";
  EXPECT_EQ(Hints(resources), std::vector<std::string>());
  EXPECT_THAT(resources.problems(), IsEmpty());
}

TEST_F(PodResourcesTest, AbsentSocketIsAProblemUntilThereIsOne) {
  PodResources resources(Options());
  resources.SetWanted(true);
  ASSERT_TRUE(Becomes(resources, 1));
  const Problem problem = resources.problems().front();
  EXPECT_EQ(problem.kind, "socket");
  EXPECT_THAT(problem.message, HasSubstr(socket_ + ": there is no such socket"));
  EXPECT_EQ(Hints(resources), std::vector<std::string>());
  EXPECT_EQ(resources.problems().front().since, problem.since);
  StartKubelet();
  EXPECT_TRUE(Becomes(resources, 0));
  EXPECT_EQ(Hints(resources), gpu_);
}

TEST_F(PodResourcesTest, NothingIsAskedForAWhileAfterALateAnswer) {
  StartKubelet();
  kubelet_->Hang(true);
  PodResources::Options options = Options(milliseconds(50));
  options.look_again = milliseconds(100'000);
  PodResources resources(options);
  EXPECT_EQ(Hints(resources), std::vector<std::string>());
  EXPECT_EQ(Hints(resources), std::nullopt);
  EXPECT_THAT(resources.problems(), IsEmpty()) << "no policy needs hints";
}

TEST_F(PodResourcesTest, KubeletThatAnswersAgainIsAskedAtOnce) {
  StartKubelet();
  kubelet_->Hang(true);
  // Long enough for an answer on a busy machine.
  PodResources resources(Options(milliseconds(2'000)));
  resources.SetWanted(true);
  ASSERT_TRUE(Becomes(resources, 1));
  EXPECT_THAT(resources.problems().front().message, HasSubstr("no answer within"));
  kubelet_->Hang(false);
  ASSERT_TRUE(Becomes(resources, 0));
  EXPECT_EQ(Hints(resources), gpu_);
}

TEST_F(PodResourcesTest, ProblemsAreForgottenWhenNoPolicyNeedsHints) {
  PodResources resources(Options());
  resources.SetWanted(true);
  ASSERT_TRUE(Becomes(resources, 1));
  resources.SetWanted(false);
  EXPECT_THAT(resources.problems(), IsEmpty());
}

TEST_F(PodResourcesTest, DisabledSocketIsNamedAndNotAsked) {
  PodResources::Options options = Options();
  options.server.socket.clear();
  PodResources resources(options);
  resources.SetWanted(true);
  EXPECT_EQ(Hints(resources), std::nullopt);
  ASSERT_THAT(resources.problems(), SizeIs(1));
  EXPECT_THAT(resources.problems().front().message, HasSubstr("is disabled"));
}

TEST_F(PodResourcesTest, AnswerThatIsTooLongIsAProblemUntilOneIsNot) {
  StartKubelet();
  PodResources::Options options = Options();
  options.server.max_answer = 10;
  PodResources resources(options);
  resources.SetWanted(true);
  EXPECT_EQ(Hints(resources), std::vector<std::string>());
  ASSERT_THAT(resources.problems(), SizeIs(1));
  EXPECT_THAT(resources.problems().front().message, HasSubstr("too long"));
  // Trials are about no container, and are answered.
  test::RunFor(loop_, milliseconds(100));
  EXPECT_THAT(resources.problems(), SizeIs(1));
}

// A socket of something that speaks no HTTP/2, or ends the connection.
TEST_F(PodResourcesTest, PeerThatIsNoKubeletGivesNoHints) {
  const auto answer = [](uint32_t, const std::string&) { return std::string("what?\r\n\r\n"); };
  auto peer = test::RawRuntime::Start(socket_, {.answer = answer, .greeting = "hello, who is it?"});
  ASSERT_TRUE(peer.ok());
  PodResources resources(Options());
  resources.SetWanted(true);
  EXPECT_EQ(Hints(resources), std::vector<std::string>());
  EXPECT_TRUE(Becomes(resources, 1));
}

TEST_F(PodResourcesTest, MayEndWhileAQuestionIsOpen) {
  StartKubelet();
  kubelet_->Hang(true);
  bool answered = false;
  std::unique_ptr<HintFinder::Question> question;
  {
    PodResources resources(Options(milliseconds(100)));
    resources.SetWanted(true);
    question = resources.Ask(pod_, "main", [&](const HintFinder::Hints&) { answered = true; });
    EXPECT_THAT(question, NotNull());
  }
  test::RunFor(loop_, milliseconds(150));
}

}  // namespace
}  // namespace resmgr
