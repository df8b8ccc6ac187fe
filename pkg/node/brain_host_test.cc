// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/brain_host.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/node_problems.h"
#include "pkg/node/testing/fake_door.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine_source.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A request that is at the runtime until it is answered.
class RequestUnderWay final {
 public:
  explicit RequestUnderWay(Pipeline& pipeline) : call_(pipeline, Operation::kStopContainer) {
    call_.request.container_id = ContainerId("c1");
    call_.Start();
    EXPECT_TRUE(call_.passed());
  }
  void Answer() {
    constexpr int kNotFound = 5;
    EXPECT_TRUE(call_.Reply(kNotFound));
  }

 private:
  test::TestCall call_;
};

class BrainHostTest : public testing::Test {
 protected:
  std::unique_ptr<test::FirstFitPolicy> FirstFit() {
    return std::make_unique<test::FirstFitPolicy>(machine_);
  }
  test::FakeDoor::Link& link() { return *door_.links().back(); }
  const test::FakeDoor::History& history() const { return *door_.history(); }

  void SetPolicy(std::unique_ptr<Policy> policy) {
    result_.reset();
    host_->SetPolicy(std::move(policy), [this](const Status& status) { result_ = status; });
  }

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  EventLoop loop_;
  LoopClock clock_{loop_};
  Pipeline pipeline_{clock_};
  HintFinder hints_{loop_, {}};
  test::FakeDoor door_;
  std::optional<Status> result_;
  std::optional<BrainHost> host_{std::in_place, BrainHost::Options{.loop = loop_,
                                                                   .machine = machine_,
                                                                   .door = door_,
                                                                   .pipeline = pipeline_,
                                                                   .hints = hints_,
                                                                   .drain_check = milliseconds(5)}};
};

TEST_F(BrainHostTest, UnderTheNullPolicyThereIsNoBrain) {
  host_->Start(nullptr);
  EXPECT_EQ(host_->manager(), nullptr);
  EXPECT_EQ(host_->RuntimeState(), "not used");
  EXPECT_THAT(history(), IsEmpty());
}

// In the other order the list could have containers whose requests passed the door unread.
TEST_F(BrainHostTest, RequestsAreDecidedBeforeTheRuntimeIsListed) {
  host_->Start(FirstFit());
  EXPECT_THAT(history(), ElementsAre("active 1", "connect 1"));
  EXPECT_TRUE(pipeline_.LooksAt(Operation::kCreateContainer));
}

TEST_F(BrainHostTest, TellsWhyTheRuntimeIsNotConnected) {
  host_->Start(FirstFit());
  EXPECT_EQ(host_->RuntimeState(), "connected");
  link().connection = Unavailable("no such socket");
  EXPECT_EQ(host_->RuntimeState(), "no such socket");
}

TEST_F(BrainHostTest, AChangeToNullDestroysTheBrainOnceItsRequestsAreOver) {
  host_->Start(FirstFit());
  link().Synchronize();
  RequestUnderWay request(pipeline_);
  SetPolicy(nullptr);
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer));
  EXPECT_TRUE(RunUntil(loop_, [this] { return result_.has_value(); }));
  EXPECT_EQ(*result_, OkStatus());
  EXPECT_EQ(host_->manager(), nullptr);
  EXPECT_TRUE(RunUntil(loop_, [this] { return history().back() == "retire 1"; }));
  EXPECT_THAT(history(), ElementsAre("active 1", "connect 1", "active none", "retire 1"));
  bool checked = false;
  const auto later = loop_.After(milliseconds(50), [&checked] { checked = true; });
  EXPECT_TRUE(RunUntil(loop_, [&checked] { return checked; }));
  ASSERT_EQ(door_.links().size(), 1u) << "a request is under way";
  request.Answer();
  EXPECT_TRUE(RunUntil(loop_, [this] { return door_.links().empty(); }));
  EXPECT_EQ(history().back(), "end 1");
}

TEST_F(BrainHostTest, CpusThatAreOfflineAreOfflineForBrainsThatCome) {
  const auto refusal = [this] {
    Pod pod;
    pod.id = PodSandboxId("sandbox");
    pod.qos = QosClass::kGuaranteed;
    host_->manager()->PodCreated(pod);
    CreateRequest request;
    request.pod_id = pod.id;
    request.name = "large";
    request.has_resources = true;
    request.resources.cpu_period = 100'000;
    request.resources.cpu_quota = 400'000;
    request.resources.cpu_shares = 4096;
    return std::string(Message(host_->manager()->AdmitCreate(std::move(request)).status()));
  };
  host_->Start(FirstFit());
  link().Synchronize();
  EXPECT_THAT(refusal(), testing::Not(testing::HasSubstr("offline")));
  EXPECT_EQ(host_->SetOffline(FirstFit(), {.cpus = {2, 3}}), OkStatus());
  EXPECT_THAT(refusal(), testing::HasSubstr("; CPUs 2-3 are offline; "));
  SetPolicy(nullptr);
  EXPECT_TRUE(RunUntil(loop_, [this] { return result_.has_value(); }));
  EXPECT_EQ(host_->SetOffline(nullptr, {.cpus = {2}}), OkStatus());
  door_.runtime_is_up = true;
  SetPolicy(FirstFit());
  link().Synchronize();
  EXPECT_TRUE(RunUntil(loop_, [this] { return result_.has_value(); }));
  EXPECT_EQ(*result_, OkStatus());
  EXPECT_THAT(refusal(), testing::HasSubstr("; CPU 2 is offline; "));
}

TEST_F(BrainHostTest, AChangeFromNullTakesOverWhatRunsFirst) {
  door_.runtime_is_up = true;
  host_->Start(nullptr);
  SetPolicy(FirstFit());
  EXPECT_THAT(history(), ElementsAre("active 1", "connect 1"));
  EXPECT_FALSE(result_.has_value()) << "what runs is not known yet";
  link().client.AnswerList();
  EXPECT_TRUE(RunUntil(loop_, [this] { return result_.has_value(); }));
  EXPECT_EQ(*result_, OkStatus());
  EXPECT_EQ(host_->manager()->policy().name(), "first-fit");
}

TEST_F(BrainHostTest, AChangeFromNullDoesNotWaitForARuntimeThatIsAway) {
  host_->Start(nullptr);
  SetPolicy(FirstFit());
  EXPECT_EQ(result_, OkStatus());
}

TEST_F(BrainHostTest, ANewBrainStopsOneThatIsRetired) {
  host_->Start(FirstFit());
  link().Synchronize();
  RequestUnderWay request(pipeline_);
  SetPolicy(nullptr);
  EXPECT_TRUE(RunUntil(loop_, [this] { return history().back() == "retire 1"; }));
  test::FakeDoor::Link& former = link();
  SetPolicy(FirstFit());
  EXPECT_EQ(history().back(), "connect 2");
  link().Synchronize();
  const size_t lists = former.client.lists.size();
  former.events.connected();
  EXPECT_EQ(former.client.lists.size(), lists) << "it asks the runtime for nothing";
  request.Answer();
  EXPECT_TRUE(RunUntil(loop_, [this] { return history().back() == "end 1"; }));
}

// A front door that ends later removes its own stages.
TEST_F(BrainHostTest, UnderTheNullPolicyTheUpdatingManagerIsOneThatIsReleasing) {
  host_->Start(FirstFit());
  EXPECT_EQ(host_->updating_manager(), host_->manager());
  const ContainerId web = link().HoldRunning("web");
  const auto answer_next = [this](const Status& status) {
    EXPECT_TRUE(RunUntil(loop_, [this] { return !link().client.updates.empty(); }));
    link().client.Answer(0, status);
  };
  link().Synchronize();
  answer_next(OkStatus());
  // Without the runtime the change is not refused, but follows the next connect.
  link().events.disconnected();
  SetPolicy(nullptr);
  EXPECT_TRUE(RunUntil(loop_, [this] { return result_.has_value(); }));
  EXPECT_EQ(host_->manager(), nullptr);
  EXPECT_NE(host_->updating_manager(), nullptr);
  EXPECT_FALSE(host_->AllLetGo());
  EXPECT_TRUE(RunUntil(loop_, [this] { return history().back() == "retire 1"; }));
  link().Synchronize();
  answer_next(Internal("disk on fire"));
  const ResourceManager* const releasing = host_->updating_manager();
  ASSERT_NE(releasing, nullptr);
  std::string named;
  ForEachNotUpdated(*releasing, [&](const Pod&, const Container& container, const Status& error) {
    named = fmt::format("{}: {}", container.id.value(), Message(error));
  });
  EXPECT_EQ(named, fmt::format("{}: disk on fire", web.value()));
  answer_next(OkStatus());
  EXPECT_EQ(host_->updating_manager(), nullptr);
  EXPECT_TRUE(host_->AllLetGo());
}

TEST_F(BrainHostTest, ItsEndLeavesThePipelineWithoutItsStage) {
  host_->Start(FirstFit());
  ASSERT_TRUE(pipeline_.LooksAt(Operation::kCreateContainer));
  host_.reset();
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer));
}

TEST_F(BrainHostTest, APreviewWithoutABrainMovesNothing) {
  host_->Start(nullptr);
  const auto policy = FirstFit();
  const auto moves = host_->PreviewPolicy(policy.get());
  ASSERT_EQ(moves.status(), OkStatus());
  EXPECT_THAT(*moves, IsEmpty());
}

}  // namespace
}  // namespace resmgr
