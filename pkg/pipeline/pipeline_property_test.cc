// SPDX-License-Identifier: Apache-2.0
// Random stages that answer at once, later, twice, too late or not at all, refuse, fail or die,
// with random replies and clients that go away: a stage's reservation is kept or given up exactly
// once, the last stage first. A model without asynchrony computes the required events and their
// order.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/pipeline_call.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/sys/clock.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeadline{100};
constexpr milliseconds kSoon{10};

enum class BeforeScript {
  kAcceptNow,
  kAcceptLater,
  kAcceptTwice,
  kAcceptNowAndRefuseLater,
  kRefuseNow,
  kRefuseLater,
  kFailNow,
  kFailLater,
  kDie,
  kAcceptTooLate,
  kNeverAnswer,
};
constexpr int kBeforeScripts = static_cast<int>(BeforeScript::kNeverAnswer) + 1;

enum class AfterScript { kSeeNow, kHoldAndRelease, kHoldForever };
constexpr int kAfterScripts = static_cast<int>(AfterScript::kHoldForever) + 1;

struct StageScript {
  BeforeScript before = BeforeScript::kAcceptNow;
  AfterScript after = AfterScript::kSeeNow;
  FailurePolicy failure = FailurePolicy::kFail;
};

// When the client goes away.
enum class Leaves { kNever, kWhileAStageIsAsked, kWhileForwarded, kWhileAReplyIsHeld };

struct CallScript {
  std::vector<StageScript> stages;
  Leaves leaves = Leaves::kNever;
  int reply_code = 0;
};

using Log = std::vector<std::string>;

// The events of the stages and the front of one call.
struct Recorded {
  Log log;
  int reserved = 0;  // present sum
};

class ScriptedCall final : public StageCall {
 public:
  ScriptedCall(Stage& stage, const StageScript& script, Recorded& record, Clock& clock)
      : StageCall(stage), script_(script), record_(record), clock_(clock) {}
  ~ScriptedCall() override {
    if (state_ != State::kReserved) return;
    // A call that did not accept needs neither a roll-back nor an outcome.
    EXPECT_FALSE(accepted_) << Name() << " was neither rolled back nor shown the outcome";
    --record_.reserved;
  }

  void Before(Request&, const Adjustment&) override {
    ++record_.reserved;
    state_ = State::kReserved;
    switch (script_.before) {
      case BeforeScript::kAcceptNow:
        return Accept();
      case BeforeScript::kAcceptLater:
        return Later(kSoon, [this] { Accept(); });
      case BeforeScript::kAcceptTwice:
        Accept();
        return Pass();
      case BeforeScript::kAcceptNowAndRefuseLater:
        KeepForLater(kSoon, [](LateAnswer& answer) { answer.Refuse(Internal("too late")); });
        return Accept();
      case BeforeScript::kRefuseNow:
        return Refuse(ResourceExhausted("{}", Name()));
      case BeforeScript::kRefuseLater:
        return Later(kSoon, [this] { Refuse(ResourceExhausted("{}", Name())); });
      case BeforeScript::kFailNow:
        return Fail(Unavailable("{}", Name()));
      case BeforeScript::kFailLater:
        return Later(kSoon, [this] { Fail(Unavailable("{}", Name())); });
      case BeforeScript::kDie:
        return KeepForLater(kSoon, [](LateAnswer&) {});
      case BeforeScript::kAcceptTooLate:
        return KeepForLater(2 * kDeadline, [](LateAnswer& answer) { answer.Pass(); });
      case BeforeScript::kNeverAnswer:
        return KeepForLater(10 * kDeadline, [](LateAnswer&) {});
    }
  }
  void RollBack() override { Settle("roll back " + Name()); }
  void After(Request&, const Outcome& outcome) override {
    Settle(outcome.known ? "outcome " + std::to_string(outcome.code) + " " + Name()
                         : "unknown " + Name());
    if (script_.after == AfterScript::kSeeNow) return;
    auto hold = std::make_shared<ReplyHold>(HoldReply());
    const milliseconds delay =
        script_.after == AfterScript::kHoldAndRelease ? kSoon : 10 * kDeadline;
    leftovers_->push_back(clock_.After(delay, [hold] {
      hold->Release();
      hold->Release();
    }));
  }

  // Timers that outlive the call.
  std::shared_ptr<std::vector<EventLoop::HandlePtr>> leftovers_;

 private:
  enum class State { kNone, kReserved, kSettled };

  const std::string& Name() { return stage().options().name; }
  void Accept() {
    accepted_ = true;
    record_.log.push_back("accept " + Name());
    Pass();
  }
  void Settle(const std::string& what) {
    EXPECT_EQ(state_, State::kReserved) << what;
    EXPECT_TRUE(accepted_) << what;
    state_ = State::kSettled;
    --record_.reserved;
    record_.log.push_back(what);
  }
  void Later(milliseconds delay, EventLoop::Task task) {
    timer_ = clock_.After(delay, std::move(task));
  }
  // Keeps the answer for later use, and drops it then.
  void KeepForLater(milliseconds delay, std::function<void(LateAnswer&)> use) {
    auto answer = std::make_shared<std::optional<LateAnswer>>(AnswerLater());
    leftovers_->push_back(clock_.After(delay, [answer, use = std::move(use)] {
      use(**answer);
      answer->reset();
    }));
  }

  const StageScript script_;
  Recorded& record_;
  Clock& clock_;
  State state_ = State::kNone;
  bool accepted_ = false;
  EventLoop::HandlePtr timer_;
};

class ScriptedStage final : public Stage {
 public:
  ScriptedStage(int number, const StageScript& script, Recorded& record, Clock& clock)
      : Stage({.name = std::to_string(number),
               .operations = {Operation::kCreateContainer},
               .deadline = kDeadline,
               .failure = script.failure}),
        script_(script),
        record_(record),
        clock_(clock) {}

  std::unique_ptr<StageCall> Begin(const Request&) override {
    auto call = std::make_unique<ScriptedCall>(*this, script_, record_, clock_);
    call->leftovers_ = leftovers_;
    return call;
  }

 private:
  const StageScript script_;
  Recorded& record_;
  Clock& clock_;
  const std::shared_ptr<std::vector<EventLoop::HandlePtr>> leftovers_ =
      std::make_shared<std::vector<EventLoop::HandlePtr>>();
};

class NoSource final : public Request::Source {
 public:
  bool ReadCreate(CreateRequest&) override { return false; }
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet, ContainerDetails&) override { return false; }
};

// Computes the events without any of the code under test.
class Model {
 public:
  explicit Model(const CallScript& script) : script_(script) {}

  Log Run() {
    if (AskAll()) SeeReply();
    return std::move(log_);
  }

 private:
  static bool Waits(BeforeScript script) {
    using enum BeforeScript;
    return script == kAcceptLater || script == kRefuseLater || script == kFailLater ||
           script == kDie || script == kAcceptTooLate || script == kNeverAnswer;
  }
  // True: the request is forwarded.
  bool AskAll() {
    using enum BeforeScript;
    for (size_t i = 0; i < script_.stages.size(); ++i) {
      const StageScript& stage = script_.stages[i];
      if (Waits(stage.before) && script_.leaves == Leaves::kWhileAStageIsAsked) {
        RollBack();
        return false;
      }
      switch (stage.before) {
        case kAcceptNow:
        case kAcceptLater:
        case kAcceptTwice:
        case kAcceptNowAndRefuseLater:
          accepted_.push_back(i);
          log_.push_back("accept " + std::to_string(i));
          break;
        case kRefuseNow:
        case kRefuseLater:
          RollBack();
          log_.emplace_back("refused RESOURCE_EXHAUSTED");
          return false;
        default:
          if (stage.failure == FailurePolicy::kIgnore) break;
          RollBack();
          log_.emplace_back(stage.before == kAcceptTooLate || stage.before == kNeverAnswer
                                ? "refused DEADLINE_EXCEEDED"
                                : "refused UNAVAILABLE");
          return false;
      }
    }
    log_.emplace_back("forwarded");
    return true;
  }
  void RollBack() {
    for (; !accepted_.empty(); accepted_.pop_back())
      log_.push_back("roll back " + std::to_string(accepted_.back()));
  }
  void SeeReply() {
    const bool known = script_.leaves != Leaves::kWhileForwarded;
    bool there = known;
    for (; !accepted_.empty(); accepted_.pop_back()) {
      const size_t i = accepted_.back();
      log_.push_back(known
                         ? "outcome " + std::to_string(script_.reply_code) + " " + std::to_string(i)
                         : "unknown " + std::to_string(i));
      const bool holds = script_.stages[i].after != AfterScript::kSeeNow;
      if (holds && script_.leaves == Leaves::kWhileAReplyIsHeld) there = false;
    }
    if (there) log_.emplace_back("replied");
  }

  const CallScript& script_;
  Log log_;
  std::vector<size_t> accepted_;
};

// The real pipeline with the scripted stages.
class Rehearsal final : private PipelineCall::Front {
 public:
  explicit Rehearsal(const CallScript& script) : script_(script), pipeline_(clock_) {
    for (size_t i = 0; i < script.stages.size(); ++i) {
      stages_.push_back(
          std::make_unique<ScriptedStage>(static_cast<int>(i), script.stages[i], record_, clock_));
      pipeline_.Add(*stages_.back());
    }
  }

  Log Run() {
    PipelineCall::Front& front = *this;
    call_ = std::make_unique<PipelineCall>(pipeline_, front);
    call_->Start(request_);
    if (!decided_ && script_.leaves == Leaves::kWhileAStageIsAsked) call_.reset();
    clock_.Advance(20 * kDeadline);
    if (forwarded_) Reply();
    clock_.Advance(20 * kDeadline);
    call_.reset();
    EXPECT_EQ(record_.reserved, 0);
    for (const auto& stage : stages_)
      EXPECT_EQ(stage->calls(), 0u);
    return std::move(record_.log);
  }

 private:
  void Reply() {
    if (script_.leaves == Leaves::kWhileForwarded) return call_.reset();
    if (call_->OnReply({.code = script_.reply_code, .id = "id"})) return OnReplySeen();
    EXPECT_TRUE(call_->HoldsReply());
    if (script_.leaves == Leaves::kWhileAReplyIsHeld) call_.reset();
  }
  void OnDecided(const Status& refusal, const Adjustment&) override {
    EXPECT_FALSE(decided_);
    decided_ = true;
    forwarded_ = refusal.ok();
    record_.log.push_back(refusal.ok() ? "forwarded"
                                       : "refused " + std::string(CodeName(refusal.code())));
  }
  void OnReplySeen() override { record_.log.emplace_back("replied"); }
  bool Has(Operation, Field) const override { return true; }

  const CallScript& script_;
  ManualClock clock_;
  Recorded record_;
  std::vector<std::unique_ptr<ScriptedStage>> stages_;
  Pipeline pipeline_;
  NoSource source_;
  Request request_{Operation::kCreateContainer, source_};
  std::unique_ptr<PipelineCall> call_;
  bool decided_ = false;
  bool forwarded_ = false;
};

CallScript RandomScript(std::mt19937_64& random) {
  const auto pick = [&random](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  CallScript script;
  // Half of the calls get to their end.
  const int scripts = pick(2) == 0 ? static_cast<int>(BeforeScript::kRefuseNow) : kBeforeScripts;
  for (int left = pick(6); left > 0; --left) {
    script.stages.push_back(
        {.before = static_cast<BeforeScript>(pick(scripts)),
         .after = static_cast<AfterScript>(pick(kAfterScripts)),
         .failure = pick(2) == 0 ? FailurePolicy::kFail : FailurePolicy::kIgnore});
  }
  script.leaves = static_cast<Leaves>(pick(4));
  script.reply_code = pick(2) == 0 ? 0 : pick(20);
  return script;
}

TEST(PipelinePropertyTest, EveryReservationEndsOnceAndInReverseOrder) {
  const uint64_t seed = test::SeedOr(17);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 5000; ++i) {
    const CallScript script = RandomScript(random);
    std::string text = "call " + std::to_string(i) + ":";
    for (const StageScript& stage : script.stages) {
      text += " " + std::to_string(static_cast<int>(stage.before)) + "/" +
              std::to_string(static_cast<int>(stage.after)) +
              (stage.failure == FailurePolicy::kFail ? "F" : "I");
    }
    SCOPED_TRACE(text + ", leaves " + std::to_string(static_cast<int>(script.leaves)));
    ASSERT_EQ(Rehearsal(script).Run(), Model(script).Run());
  }
}

// One stage's wish for CPUs and for memory nodes: nothing, a list, or no list.
struct Said {
  static constexpr int kNothing = -2;
  static constexpr int kNoList = -1;

  int cpu = kNothing;
  int node = kNothing;

  bool anything() const { return cpu != kNothing || node != kNothing; }
  Adjustment AsAdjustment() const {
    Adjustment adjustment;
    if (cpu >= 0) adjustment.values.cpus = CpuSet{cpu};
    if (node >= 0) adjustment.values.mems = NodeSet{node};
    if (cpu == kNoList) adjustment.Wide().clear_cpus = true;
    if (node == kNoList) adjustment.Wide().clear_mems = true;
    return adjustment;
  }
};

std::unique_ptr<Stage> PlacingStage(const Said& said, bool owns) {
  auto stage = std::make_unique<test::FunctionStage>(
      Stage::Options{.name = "placing", .operations = {Operation::kCreateContainer}},
      [said](auto& call, Request&, const Adjustment&) { call.Adjust(said.AsAdjustment()); });
  stage->owns_placement = owns;
  return stage;
}

// Collects the sum of the stages' wishes.
class SumFront final : public PipelineCall::Front {
 public:
  Said sum;

 private:
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override {
    EXPECT_TRUE(refusal.ok());
    if (adjustment.values.cpus) sum.cpu = adjustment.values.cpus->First();
    if (adjustment.values.mems) sum.node = adjustment.values.mems->First();
    if (adjustment.clears_cpus()) sum.cpu = Said::kNoList;
    if (adjustment.clears_mems()) sum.node = Said::kNoList;
    const WideAdjustment* const wide = adjustment.wide();
    EXPECT_FALSE(wide != nullptr && wide->clear_cpus && adjustment.values.cpus);
    EXPECT_FALSE(wide != nullptr && wide->clear_mems && adjustment.values.mems);
  }
  void OnReplySeen() override {}
  bool Has(Operation, Field) const override { return true; }
};

TEST(PipelinePropertyTest, OfListsAndTheirClearingsTheLastCountsUnlessThePolicyOwnsThem) {
  const uint64_t seed = test::SeedOr(19);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> any(Said::kNothing, 3);
  for (int i = 0; i < 3000; ++i) {
    ManualClock clock;
    Pipeline pipeline(clock);
    const bool owned = any(random) > 0;
    std::vector<std::unique_ptr<Stage>> stages;
    Said expected;
    uint64_t dropped = 0;
    for (int left = std::abs(any(random)) + 1; left > 0; --left) {
      const bool owns = owned && stages.empty();
      Said said{.cpu = any(random), .node = any(random)};
      // The policy sets lists only.
      if (owns && said.cpu < 0) said.cpu = Said::kNothing;
      if (owns && said.node < 0) said.node = Said::kNothing;
      if (!owned || owns) {
        if (said.cpu != Said::kNothing) expected.cpu = said.cpu;
        if (said.node != Said::kNothing) expected.node = said.node;
      } else if (said.anything()) {
        ++dropped;
      }
      stages.push_back(PlacingStage(said, owns));
      pipeline.Add(*stages.back());
    }
    NoSource source;
    Request request(Operation::kCreateContainer, source);
    SumFront front;
    {
      PipelineCall call(pipeline, front);
      call.Start(request);
    }
    ASSERT_EQ(front.sum.cpu, expected.cpu) << "call " << i;
    ASSERT_EQ(front.sum.node, expected.node) << "call " << i;
    ASSERT_EQ(pipeline.dropped_placements(), dropped) << "call " << i;
  }
}

}  // namespace
}  // namespace resmgr
