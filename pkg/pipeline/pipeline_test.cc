// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/pipeline.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/pipeline/pipeline_call.h"
#include "pkg/resmgr/manual_clock.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::Fails;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr OperationSet kCreate{Operation::kCreateContainer};

// A stage of which each test says what it does.
class TestStage final : public Stage {
 public:
  class TestCall;
  using BeforeFunction = std::function<void(TestCall& call, Request& request, const Adjustment&)>;
  using AfterFunction = std::function<void(TestCall& call, const Outcome& outcome)>;

  explicit TestStage(Options stage_options, BeforeFunction does = nullptr)
      : Stage(std::move(stage_options)), before(std::move(does)) {}

  BeforeFunction before;
  AfterFunction after;
  bool owns_placement = false;
  int rolled_back = 0;

  std::unique_ptr<StageCall> Begin(const Request&) override;
  bool OwnsPlacement() const override { return owns_placement; }
};

class TestStage::TestCall final : public StageCall {
 public:
  explicit TestCall(TestStage& stage) : StageCall(stage), owner_(stage) {}
  using StageCall::Adjust;
  using StageCall::AnswerLater;
  using StageCall::Fail;
  using StageCall::HoldReply;
  using StageCall::Pass;
  using StageCall::Refuse;

  void Before(Request& request, const Adjustment& so_far) override {
    if (owner_.before == nullptr) return Pass();
    owner_.before(*this, request, so_far);
  }
  void RollBack() override { ++owner_.rolled_back; }
  void After(Request&, const Outcome& outcome) override {
    if (owner_.after != nullptr) owner_.after(*this, outcome);
  }

 private:
  TestStage& owner_;
};

std::unique_ptr<StageCall> TestStage::Begin(const Request&) {
  return std::make_unique<TestCall>(*this);
}

class TestSource final : public Request::Source {
 public:
  bool ReadCreate(CreateRequest&) override { return false; }
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override {
    if (parts.contains(Detail::kMounts)) details.mounts.push_back({.container_path = "/data"});
    return true;
  }
};

// A call and what its front hears.
class TestFront final : public PipelineCall::Front {
 public:
  TestFront(Pipeline& pipeline, Operation operation = Operation::kCreateContainer)
      : request(operation, source), call(pipeline, *this) {
    request.container_id = ContainerId("id");
  }

  bool OnReplyOf(int code) { return call.OnReply({.code = code, .id = "id"}); }

  TestSource source;
  Request request;
  std::optional<Status> decided;
  std::vector<FieldChange> changes;
  ResourceValues values;
  bool reply_seen = false;
  PipelineCall call;

 private:
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override {
    decided = refusal;
    changes = adjustment.Changes();
    values = adjustment.values;
  }
  void OnReplySeen() override { reply_seen = true; }
};

class PipelineTest : public testing::Test {
 protected:
  ManualClock clock_;
  Pipeline pipeline_{clock_};
};

TEST_F(PipelineTest, LooksAtWhatAStageLooksAt) {
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer));
  TestStage stage({.name = "a", .operations = kCreate});
  pipeline_.Add(stage);
  EXPECT_TRUE(pipeline_.LooksAt(Operation::kCreateContainer));
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kStartContainer));
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kOther));
  pipeline_.Remove(stage);
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer));
}

TEST_F(PipelineTest, EachStageSeesWhatEarlierOnesChange) {
  ResourceValues seen;
  TestStage policy({.name = "policy", .operations = kCreate},
                   [](auto& call, Request&, const Adjustment&) {
                     call.Adjust(ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 2});
                   });
  TestStage hook({.name = "hook", .operations = kCreate},
                 [&seen](auto& call, Request&, const Adjustment& so_far) {
                   seen = so_far.values;
                   call.Adjust(ResourceValues{.cpu_shares = 3});
                 });
  pipeline_.Add(hook);
  pipeline_.SetPolicyStage(&policy);
  TestFront front(pipeline_);

  front.call.Start(front.request);

  EXPECT_EQ(seen, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 2}));
  EXPECT_THAT(front.decided, testing::Optional(OkStatus()));
  EXPECT_EQ(front.values, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 3}));
}

TEST_F(PipelineTest, DropsCountsAndReportsOnceWhatIsThePolicysToDecide) {
  TestStage policy({.name = "policy", .operations = kCreate},
                   [](auto& call, Request&, const Adjustment&) {
                     call.Adjust(ResourceValues{.cpus = CpuSet{1}});
                   });
  policy.owns_placement = true;
  TestStage hook(
      {.name = "hook", .operations = kCreate}, [](auto& call, Request&, const Adjustment&) {
        call.Adjust(ResourceValues{.cpus = CpuSet{2}, .mems = NodeSet{1}, .cpu_shares = 3});
      });
  pipeline_.SetPolicyStage(&policy);
  pipeline_.Add(hook);
  std::string log;
  SetLogWriter([&log](std::string_view line) { log += line; });
  for (int i = 0; i < 2; ++i) {
    TestFront front(pipeline_);
    front.call.Start(front.request);
    EXPECT_EQ(front.values, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 3}));
  }
  SetLogWriter(nullptr);
  EXPECT_EQ(pipeline_.dropped_placements(), 2u);
  EXPECT_THAT(log, HasSubstr("stage hook sets CPUs"));
  EXPECT_EQ(log.find("stage hook"), log.rfind("stage hook"));
}

TEST_F(PipelineTest, AStageMayPlaceWhereNoPolicyDoes) {
  TestStage policy({.name = "policy", .operations = kCreate});
  TestStage hook({.name = "hook", .operations = kCreate},
                 [](auto& call, Request&, const Adjustment&) {
                   call.Adjust(ResourceValues{.cpus = CpuSet{2}});
                 });
  pipeline_.SetPolicyStage(&policy);
  pipeline_.Add(hook);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_EQ(front.values.cpus, CpuSet{2});
  EXPECT_EQ(pipeline_.dropped_placements(), 0u);
}

TEST_F(PipelineTest, RemembersWhoChangedWhatOfAContainer) {
  TestStage policy({.name = "policy", .operations = OperationSet::All()},
                   [](auto& call, Request&, const Adjustment&) {
                     call.Adjust(ResourceValues{.cpus = CpuSet{1}});
                   });
  policy.owns_placement = true;
  TestStage hook({.name = "hook", .operations = kCreate},
                 [](auto& call, Request&, const Adjustment&) {
                   Adjustment adjustment;
                   adjustment.Wide().environment.Set("A", "1");
                   call.Adjust(std::move(adjustment));
                 });
  pipeline_.SetPolicyStage(&policy);
  pipeline_.Add(hook);
  {
    TestFront failed(pipeline_);
    failed.call.Start(failed.request);
    failed.OnReplyOf(2);
    EXPECT_TRUE(pipeline_.owners().empty());
  }
  TestFront created(pipeline_);
  created.call.Start(created.request);
  EXPECT_TRUE(created.OnReplyOf(0));
  EXPECT_THAT(pipeline_.owners().Of(ContainerId("id")),
              ElementsAre(FieldOwner{.change = {.field = Field::kEnvironment, .key = "A"},
                                     .stage = "hook"}));
  TestFront removed(pipeline_, Operation::kRemoveContainer);
  removed.call.Start(removed.request);
  EXPECT_TRUE(removed.OnReplyOf(0));
  EXPECT_TRUE(pipeline_.owners().empty());
}

TEST_F(PipelineTest, ReadsTheDetailsThatAStageWants) {
  size_t mounts = 0;
  TestStage stage({.name = "a", .operations = kCreate, .details = {Detail::kMounts}},
                  [&mounts](auto& call, Request& request, const Adjustment&) {
                    mounts = request.Details({}).mounts.size();
                    call.Pass();
                  });
  pipeline_.Add(stage);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_EQ(mounts, 1u);
}

TEST_F(PipelineTest, ARefusalRollsBackAllEarlierStages) {
  TestStage first({.name = "first", .operations = kCreate});
  TestStage second(
      {.name = "second", .operations = kCreate},
      [](auto& call, Request&, const Adjustment&) { call.Refuse(ResourceExhausted("no room")); });
  pipeline_.Add(first);
  pipeline_.Add(second);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kResourceExhausted, HasSubstr("no room")));
  EXPECT_EQ(first.rolled_back, 1);
  EXPECT_EQ(second.rolled_back, 0);
  EXPECT_EQ(first.calls() + second.calls(), 0u);
}

TEST_F(PipelineTest, AStageThatHangsDelaysItsOwnCallOnlyAndUntilItsDeadline) {
  std::vector<LateAnswer> answers;
  bool hang = true;
  TestStage stage({.name = "slow", .operations = kCreate, .deadline = milliseconds(100)},
                  [&](auto& call, Request&, const Adjustment&) {
                    if (!hang) return call.Pass();
                    answers.push_back(call.AnswerLater());
                  });
  pipeline_.Add(stage);
  TestFront hung(pipeline_);
  hung.call.Start(hung.request);
  hang = false;
  TestFront other(pipeline_);
  other.call.Start(other.request);
  EXPECT_THAT(other.decided, testing::Optional(OkStatus()));

  clock_.Advance(milliseconds(99));
  EXPECT_EQ(hung.decided, std::nullopt);
  clock_.Advance(milliseconds(1));
  EXPECT_THAT(*hung.decided,
              Fails(StatusCode::kDeadlineExceeded, AllOf(HasSubstr("slow"), HasSubstr("100 ms"))));
  answers[0].Pass();
  EXPECT_EQ(stage.calls(), 1u);  // of the other call
}

TEST_F(PipelineTest, AStageWhoseFailureIsIgnoredIsLeftOut) {
  TestStage failing(
      {.name = "a", .operations = kCreate, .failure = FailurePolicy::kIgnore},
      [](auto& call, Request&, const Adjustment&) { call.Fail(Unavailable("no connection")); });
  bool saw_reply = false;
  failing.after = [&saw_reply](auto&, const Outcome&) { saw_reply = true; };
  pipeline_.Add(failing);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_THAT(front.decided, testing::Optional(OkStatus()));
  EXPECT_EQ(pipeline_.ignored_failures(), 1u);
  EXPECT_TRUE(front.OnReplyOf(0));
  EXPECT_FALSE(saw_reply);
}

TEST_F(PipelineTest, AStageThatDropsItsAnswerHasFailed) {
  TestStage stage({.name = "dead", .operations = kCreate},
                  [](auto& call, Request&, const Adjustment&) { call.AnswerLater(); });
  pipeline_.Add(stage);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kUnavailable, HasSubstr("dead")));
}

TEST_F(PipelineTest, ARefusalIsNotIgnored) {
  TestStage stage(
      {.name = "a", .operations = kCreate, .failure = FailurePolicy::kIgnore},
      [](auto& call, Request&, const Adjustment&) { call.Refuse(ResourceExhausted("no room")); });
  pipeline_.Add(stage);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kResourceExhausted, HasSubstr("no room")));
}

TEST_F(PipelineTest, AReplyWaitsForTheStageThatHoldsIt) {
  std::optional<ReplyHold> hold;
  std::vector<std::string> order;
  TestStage first({.name = "first", .operations = kCreate});
  first.after = [&](auto&, const Outcome&) { order.emplace_back("first"); };
  TestStage second({.name = "second", .operations = kCreate});
  second.after = [&](auto& call, const Outcome&) {
    order.emplace_back("second");
    hold.emplace(call.HoldReply());
  };
  pipeline_.Add(first);
  pipeline_.Add(second);
  TestFront front(pipeline_);
  front.call.Start(front.request);

  EXPECT_FALSE(front.OnReplyOf(0));
  EXPECT_TRUE(front.call.HoldsReply());
  EXPECT_THAT(order, ElementsAre("second"));
  EXPECT_FALSE(front.reply_seen);
  hold->Release();
  EXPECT_THAT(order, ElementsAre("second", "first"));
  EXPECT_TRUE(front.reply_seen);
}

TEST_F(PipelineTest, AReplyIsNotHeldBeyondTheDeadline) {
  std::optional<ReplyHold> hold;
  TestStage stage({.name = "slow", .operations = kCreate, .deadline = milliseconds(100)});
  stage.after = [&hold](auto& call, const Outcome&) { hold.emplace(call.HoldReply()); };
  pipeline_.Add(stage);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  EXPECT_FALSE(front.OnReplyOf(0));
  clock_.Advance(milliseconds(100));
  EXPECT_TRUE(front.reply_seen);
  EXPECT_EQ(pipeline_.ignored_failures(), 1u);
}

TEST_F(PipelineTest, AStageThatIsTakenOutSeesItsCallsEnd) {
  int replies = 0;
  TestStage stage({.name = "a", .operations = kCreate});
  stage.after = [&replies](auto&, const Outcome& outcome) { replies += outcome.ok() ? 1 : 0; };
  pipeline_.Add(stage);
  TestFront front(pipeline_);
  front.call.Start(front.request);
  pipeline_.Remove(stage);
  EXPECT_EQ(stage.calls(), 1u);
  EXPECT_TRUE(front.OnReplyOf(0));
  EXPECT_EQ(replies, 1);
  EXPECT_EQ(stage.calls(), 0u);
}

TEST_F(PipelineTest, WithoutAReplyTheOutcomeIsUnknown) {
  std::optional<bool> known;
  TestStage stage({.name = "a", .operations = kCreate});
  stage.after = [&known](auto&, const Outcome& outcome) { known = outcome.known; };
  pipeline_.Add(stage);
  {
    TestFront front(pipeline_);
    front.call.Start(front.request);
  }
  EXPECT_EQ(known, false);
  EXPECT_EQ(stage.rolled_back, 0);
}

}  // namespace
}  // namespace resmgr
