// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/pipeline.h"

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "pkg/pipeline/pipeline_call.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/sys/clock.h"
#include "test/support/captured_log.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::Fails;
using test::FunctionStage;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr OperationSet kCreate{Operation::kCreateContainer};

class TestSource final : public Request::Source {
 public:
  bool ReadCreate(CreateRequest&) override { return false; }
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override {
    if (parts.contains(Detail::kMounts)) details.mounts.push_back({.container_path = "/data"});
    return true;
  }
};

// A call that has started, and the results that its front gets.
class TestFront final : public PipelineCall::Front {
 public:
  explicit TestFront(Pipeline& pipeline, Operation operation = Operation::kCreateContainer,
                     decltype(Request::files) files = {}, bool removes_lists = true)
      : request(operation, source), clears_placement(removes_lists), call(pipeline, *this) {
    request.files = std::move(files);
    request.container_id = ContainerId("id");
    call.Start(request);
  }

  bool OnReplyOf(int code) { return call.OnReply({.code = code, .id = "id"}); }

  TestSource source;
  Request request;
  std::optional<Status> decided;
  std::vector<FieldChange> changes;
  ResourceValues values;
  bool reply_seen = false;
  const bool clears_placement;
  PipelineCall call;

 private:
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override {
    decided = refusal;
    changes = adjustment.Changes();
    values = adjustment.values;
  }
  void OnReplySeen() override { reply_seen = true; }
  bool Has(Operation, Field field) const override { return field != Field::kHooks; }
  bool ClearsPlacement() const override { return clears_placement; }
};

using Before = FunctionStage::BeforeFunction;

// Actions of stages: set values, change other parts of the request, refuse it.
Before Sets(const ResourceValues& values) {
  return [values](auto& call, Request&, const Adjustment&) { call.Adjust(ResourceValues(values)); };
}
Before Edits(const std::function<void(Adjustment&)>& edit) {
  return [edit](auto& call, Request&, const Adjustment&) {
    Adjustment adjustment;
    edit(adjustment);
    call.Adjust(std::move(adjustment));
  };
}
Before Refuses(const Status& why) {
  return [why](auto& call, Request&, const Adjustment&) { call.Refuse(why); };
}

class PipelineTest : public testing::Test {
 protected:
  // Adds a stage for creations.
  FunctionStage& Add(Stage::Options options, Before before = nullptr) {
    options.operations = kCreate;
    FunctionStage& stage = stages_.emplace_back(std::move(options), std::move(before));
    pipeline_.Add(stage);
    return stage;
  }
  FunctionStage& Add(const char* name, Before before = nullptr) {
    return Add({.name = name}, std::move(before));
  }
  // Adds the policy's stage.
  FunctionStage& SetPolicy(bool owns_placement, Before before = nullptr) {
    FunctionStage& policy = stages_.emplace_back(
        Stage::Options{.name = "policy", .operations = OperationSet::All()}, std::move(before));
    policy.owns_placement = owns_placement;
    pipeline_.SetPolicyStage(&policy);
    return policy;
  }
  std::string Scrape() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }

  ManualClock clock_;
  Metrics metrics_{"1", {}};
  Pipeline pipeline_{clock_, &metrics_};
  std::deque<FunctionStage> stages_;
};

TEST_F(PipelineTest, KnowsWhetherStagesSetNumbers) {
  FunctionStage numbers({.name = "numbers", .operations = kCreate});
  pipeline_.SetPolicyStage(&numbers);
  Add({.name = "mounts", .sets_numbers = false});
  EXPECT_FALSE(pipeline_.OthersSetNumbers());
  pipeline_.Add(numbers);
  EXPECT_TRUE(pipeline_.OthersSetNumbers());
}

TEST_F(PipelineTest, LooksAtWhatAStageLooksAt) {
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer));
  FunctionStage& stage = Add("a");
  EXPECT_TRUE(pipeline_.LooksAt(Operation::kCreateContainer));
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kStartContainer));
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kOther));
  pipeline_.Remove(stage);
  EXPECT_FALSE(pipeline_.LooksAt(Operation::kCreateContainer));
}

TEST_F(PipelineTest, EachStageSeesWhatEarlierOnesChange) {
  ResourceValues seen;
  Add("hook", [&seen](auto& call, Request&, const Adjustment& so_far) {
    seen = so_far.values;
    call.Adjust(ResourceValues{.cpu_shares = 3});
  });
  SetPolicy(/*owns_placement=*/false, Sets({.cpus = CpuSet{1}, .cpu_shares = 2}));
  TestFront front(pipeline_);

  EXPECT_EQ(seen, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 2}));
  EXPECT_THAT(front.decided, testing::Optional(OkStatus()));
  EXPECT_EQ(front.values, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 3}));
}

TEST_F(PipelineTest, StagesStandInTheOrderOfTheirRanks) {
  std::string order;
  const auto noting = [&order](const char* name) {
    return [&order, name](auto& call, Request&, const Adjustment&) {
      order += name;
      call.Pass();
    };
  };
  Add({.name = "last", .rank = StageRank::kCpuFiles}, noting("4"));
  Add("first", noting("1"));
  Add({.name = "between", .rank = StageRank::kNriPlugins}, noting("3"));
  Add("second", noting("2"));
  EXPECT_THAT(pipeline_.StageNames(), ElementsAre("first", "second", "between", "last"));
  TestFront front(pipeline_);
  EXPECT_EQ(order, "1234");
}

TEST_F(PipelineTest, DropsCountsAndReportsOnceWhatIsThePolicysToDecide) {
  SetPolicy(/*owns_placement=*/true, Sets({.cpus = CpuSet{1}}));
  Add("hook", Sets({.cpus = CpuSet{2}, .mems = NodeSet{1}, .cpu_shares = 3}));
  const test::CapturedLog log;
  for (int i = 0; i < 2; ++i) {
    TestFront front(pipeline_);
    EXPECT_EQ(front.values, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 3}));
  }
  EXPECT_EQ(pipeline_.dropped_placements(), 2u);
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_dropped_placements_total{stage="hook"} 2)"));
  EXPECT_THAT(log.Text(), HasSubstr("stage hook sets or clears CPUs"));
  EXPECT_EQ(log.Times("stage hook"), 1);
}

TEST_F(PipelineTest, ClearingCpusIsThePolicysToDecideToo) {
  SetPolicy(/*owns_placement=*/true, Sets({.cpus = CpuSet{1}}));
  Add("hook", Edits([](Adjustment& adjustment) {
        adjustment.values.cpu_shares = 3;
        adjustment.Wide().clear_cpus = adjustment.Wide().clear_mems = true;
      }));
  TestFront front(pipeline_);

  EXPECT_EQ(front.values, (ResourceValues{.cpus = CpuSet{1}, .cpu_shares = 3}));
  EXPECT_THAT(front.changes, ElementsAre(FieldChange{.field = Field::kCpusetCpus},
                                         FieldChange{.field = Field::kCpuShares}));
  EXPECT_EQ(pipeline_.dropped_placements(), 1U);
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_dropped_placements_total{stage="hook"} 1)"));
}

class PipelineFilesTest : public PipelineTest {
 protected:
  PipelineFilesTest() {
    policy_.owns_placement = true;
    pipeline_.SetPolicyStage(&policy_);
    pipeline_.Add(hook_);
  }

  ResourceValues decides_{.cpus = CpuSet{1}, .cpu_shares = 512, .cpu_quota = 10'000};
  std::map<std::string, std::string> files_;  // files that the hook sets
  FunctionStage policy_{
      {.name = "policy", .operations = kCreate},
      [this](auto& call, Request&, const Adjustment&) { call.Adjust(ResourceValues(decides_)); }};
  FunctionStage hook_{{.name = "hook", .operations = kCreate},
                      [this](auto& call, Request&, const Adjustment& so_far) {
                        seen_.clear();
                        if (so_far.wide() != nullptr) {
                          for (const auto& edit : so_far.wide()->unified)
                            seen_[edit.key] = edit.value.value_or("removed");
                        }
                        Adjustment adjustment;
                        for (const auto& [file, value] : files_)
                          adjustment.Wide().unified.Set(file, value);
                        call.Adjust(std::move(adjustment));
                      }};
  std::map<std::string, std::string> seen_;
};

TEST_F(PipelineFilesTest, CpusetFilesOfALaterStageAreDroppedAndCounted) {
  files_ = {{"cpuset.cpus", "8-9"},
            {"cpuset.mems", "1"},
            {"cpuset.cpus.partition", "root"},
            {"cpuset.cpus.exclusive", "8-9"},
            {"memory.high", "max"}};
  TestFront front(pipeline_);
  EXPECT_THAT(front.changes, ElementsAre(FieldChange{.field = Field::kCpusetCpus},
                                         FieldChange{.field = Field::kCpuShares},
                                         FieldChange{.field = Field::kCpuQuota},
                                         FieldChange{Field::kUnified, "memory.high"}));
  EXPECT_EQ(pipeline_.dropped_placements(), 1U);
}

TEST_F(PipelineFilesTest, FilesOfALaterStageAreTheLastWordAndItOwnsThem) {
  files_ = {{"cpu.max", "50000 100000"}, {"cpu.weight", "7"}};
  TestFront front(pipeline_);
  EXPECT_EQ(front.values,
            (ResourceValues{.cpus = CpuSet{1}, .cpu_quota = 50'000, .cpu_period = 100'000}));
  EXPECT_THAT(front.changes, ElementsAre(FieldChange{.field = Field::kCpusetCpus},
                                         FieldChange{.field = Field::kCpuQuota},
                                         FieldChange{.field = Field::kCpuPeriod},
                                         FieldChange{Field::kUnified, "cpu.weight"}));
  EXPECT_TRUE(front.call.OnReply({.id = "c1"}));
  std::vector<FieldChange> owned;
  for (const FieldOwner& owner : pipeline_.owners().Of(ContainerId("c1"))) {
    EXPECT_EQ(owner.stage, "hook");
    owned.push_back(owner.change);
  }
  EXPECT_THAT(owned, ElementsAre(FieldChange{.field = Field::kCpuQuota},
                                 FieldChange{.field = Field::kCpuPeriod},
                                 FieldChange{Field::kUnified, "cpu.weight"}));
}

TEST_F(PipelineFilesTest, TheClientsOwnFilesGoWhereThePolicyDecides) {
  const test::CapturedLog log;
  for (int i = 0; i < 2; ++i) {
    TestFront front(
        pipeline_, Operation::kCreateContainer,
        {"cpuset.cpus", "cpuset.cpus.partition", "cpu.max", "cpu.weight", "memory.max"});
    EXPECT_EQ(front.values, decides_);
    EXPECT_THAT(seen_,
                ElementsAre(std::pair("cpu.max", "removed"), std::pair("cpu.weight", "removed"),
                            std::pair("cpuset.cpus", "removed"),
                            std::pair("cpuset.cpus.partition", "removed")));
  }
  EXPECT_EQ(pipeline_.dropped_placements(), 2U);
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_dropped_placements_total{stage="client"} 2)"));
  EXPECT_THAT(log.Text(), HasSubstr("a client names cpuset files"));
  EXPECT_EQ(log.Times("a client names"), 1);
}

TEST_F(PipelineFilesTest, TheClientsOwnFilesStayWhereNothingIsDecided) {
  decides_ = {};
  TestFront front(pipeline_, Operation::kCreateContainer, {"cpuset.cpus", "cpu.max", "cpu.weight"});
  EXPECT_THAT(front.changes, ElementsAre());
  EXPECT_EQ(pipeline_.dropped_placements(), 0U);
}

TEST_F(PipelineTest, KeysOfTheKubeletAreDroppedCountedAndReportedOnce) {
  Add("hook", Edits([](Adjustment& adjustment) {
        adjustment.Wide().annotations.Set("io.kubernetes.container.hash", "0");
        adjustment.Wide().annotations.Set("mine", "1");
        adjustment.Wide().labels.Remove("io.kubernetes.pod.uid");
      }));
  const test::CapturedLog log;
  for (int i = 0; i < 2; ++i) {
    TestFront front(pipeline_);
    EXPECT_THAT(front.changes, ElementsAre(FieldChange{Field::kAnnotations, "mine"}));
  }
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_dropped_keys_total{stage="hook"} 2)"));
  EXPECT_THAT(log.Text(), HasSubstr("stage hook changes labels or annotations"));
  EXPECT_EQ(log.Times("stage hook"), 1);
}

TEST_F(PipelineTest, AStageThatClearsWhereTheProtocolCannotHasFailed) {
  Add("hook", Edits([](Adjustment& adjustment) { adjustment.Wide().clear_mems = true; }));
  TestFront able(pipeline_);
  EXPECT_THAT(able.decided, testing::Optional(OkStatus()));
  EXPECT_THAT(able.changes, ElementsAre(FieldChange{.field = Field::kCpusetMems}));

  TestFront unable(pipeline_, Operation::kCreateContainer, {}, /*removes_lists=*/false);
  ASSERT_TRUE(unable.decided.has_value());
  EXPECT_EQ(unable.decided->code(), StatusCode::kUnimplemented);
  EXPECT_THAT(unable.decided->message(), HasSubstr("stage hook clears cpuset_mems"));
}

TEST_F(PipelineTest, AStageMayPlaceWhereNoPolicyDoes) {
  SetPolicy(/*owns_placement=*/false);
  Add("hook", Sets({.cpus = CpuSet{2}}));
  TestFront front(pipeline_);
  EXPECT_EQ(front.values.cpus, CpuSet{2});
  EXPECT_EQ(pipeline_.dropped_placements(), 0u);
}

TEST_F(PipelineTest, AnOutcomeIsJudgedByItsStatusAlone) {
  using enum Outcome::Kind;
  EXPECT_EQ(Outcome{.known = false}.kind(), kUnclear);
  for (int code = 0; code <= 16; ++code) {
    const bool unclear = code == 1 || code == 4 || code == 14;
    const Outcome::Kind kind = code == 0   ? kDone
                               : code == 5 ? kGone
                               : unclear   ? kUnclear
                                           : kRefused;
    EXPECT_EQ(Outcome{.code = code}.kind(), kind) << code;
  }
}

TEST_F(PipelineTest, APodIsUpdatedAlsoWhereTheRuntimeHasNoSuchCall) {
  constexpr int kUnimplemented = 12;
  for (int code = 0; code <= 16; ++code) {
    EXPECT_EQ(Outcome{.code = code}.pod_updated(), code == 0 || code == kUnimplemented) << code;
    EXPECT_FALSE((Outcome{.known = false, .code = code}.pod_updated()));
  }
}

TEST_F(PipelineTest, RemembersWhoChangedWhatOfAContainer) {
  SetPolicy(/*owns_placement=*/true, Sets({.cpus = CpuSet{1}}));
  Add("hook", Edits([](Adjustment& adjustment) { adjustment.Wide().environment.Set("A", "1"); }));
  {
    TestFront failed(pipeline_);
    failed.OnReplyOf(2);
    EXPECT_TRUE(pipeline_.owners().empty());
  }
  TestFront created(pipeline_);
  EXPECT_TRUE(created.OnReplyOf(0));
  EXPECT_THAT(pipeline_.owners().Of(ContainerId("id")),
              ElementsAre(FieldOwner{.change = {.field = Field::kEnvironment, .key = "A"},
                                     .stage = "hook"}));
  TestFront removed(pipeline_, Operation::kRemoveContainer);
  EXPECT_TRUE(removed.OnReplyOf(0));
  EXPECT_TRUE(pipeline_.owners().empty());
}

// Two of its three changes are of plugins.
struct PluginStage : FunctionStage {
  PluginStage()
      : FunctionStage({.name = "nri", .operations = kCreate},
                      [](auto& call, Request&, const Adjustment&) {
                        Adjustment adjustment;
                        adjustment.Wide().environment.Set("A", "1");
                        adjustment.Wide().environment.Set("B", "1");
                        adjustment.values.cpus = CpuSet{3};
                        call.Adjust(std::move(adjustment));
                      }) {
    left_out = {"10-env wants hooks"};
    plugin_of = [](const FieldChange& change) {
      if (change.field == Field::kCpusetCpus) return "20-cpus";
      return change.key == "A" ? "10-env" : "";
    };
  }
};

TEST_F(PipelineTest, NamesThePluginWhosePlacementIsDropped) {
  SetPolicy(/*owns_placement=*/true);
  PluginStage stage;
  pipeline_.Add(stage);
  const test::CapturedLog log;
  TestFront front(pipeline_);
  EXPECT_THAT(log.Text(), HasSubstr("stage nri (plugin 20-cpus) sets or clears CPUs"));
}

// The resource manager reports its own refusals.
TEST_F(PipelineTest, ARefusalOfALaterStageIsToldCountedAndLogged) {
  std::string told;
  FunctionStage& policy = SetPolicy(/*owns_placement=*/false);
  Add("hook", Refuses(FailedPrecondition("plugin \"10-a\" wants to set OciHooks")));
  policy.refused = [&told](const Status& why) { told = Message(why); };
  const test::CapturedLog log;
  TestFront front(pipeline_);
  EXPECT_EQ(told, "plugin \"10-a\" wants to set OciHooks");
  EXPECT_THAT(log.Text(), HasSubstr("stage hook refuses"));
  EXPECT_THAT(log.Text(), HasSubstr("wants to set OciHooks"));
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_stage_refusals_total{stage="hook"} 1)"));
}

TEST_F(PipelineTest, RemembersWhichPluginOfAStageChangedWhat) {
  PluginStage stage;
  pipeline_.Add(stage);
  TestFront created(pipeline_);
  EXPECT_TRUE(created.OnReplyOf(0));
  const auto change = [](const char* key) {
    return FieldChange{.field = Field::kEnvironment, .key = key};
  };
  EXPECT_THAT(pipeline_.owners().Of(ContainerId("id")),
              testing::UnorderedElementsAre(
                  FieldOwner{.change = change("A"), .stage = "nri", .plugin = "10-env"},
                  FieldOwner{.change = change("B"), .stage = "nri"},
                  FieldOwner{.change = {.field = Field::kCpusetCpus},
                             .stage = "nri",
                             .plugin = "20-cpus",
                             .value = "3"}));
  EXPECT_THAT(pipeline_.owners().LeftOutOf(ContainerId("id")), ElementsAre("10-env wants hooks"));
}

// Scales a quota, as a plugin of this name.
struct ScalingStage : FunctionStage {
  ScalingStage(std::string name, std::string plugin)
      : FunctionStage(
            {.name = std::move(name), .operations = kCreate},
            [](auto& call, Request&, const Adjustment& so_far) {
              call.Adjust(ResourceValues{.cpu_quota = so_far.values.cpu_quota.value_or(1000) / 2});
            }) {
    plugin_of = [plugin = std::move(plugin)](const FieldChange&) { return plugin; };
  }
};

TEST_F(PipelineTest, WarnsOnceOfOneProgramThatIsAskedTwice) {
  ScalingStage hooks("hooks", "koordlet.json");
  ScalingStage nri("nri", "00-koordlet_nri");
  ScalingStage other("more", "10-other");
  for (Stage* const stage : std::vector<Stage*>{&hooks, &nri, &other})
    pipeline_.Add(*stage);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    TestFront created(pipeline_);
    EXPECT_TRUE(created.OnReplyOf(0));
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find("both set cpu_quota of one container");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("both set", first + 1), std::string::npos) << log;
  EXPECT_NE(log.find("hooks koordlet.json and nri 00-koordlet_nri"), std::string::npos) << log;
  EXPECT_NE(log.find("-enable-nri-runtime-hook=false"), std::string::npos);
}

TEST_F(PipelineTest, RemembersTheValuesThatAStageSet) {
  Add("hooks", Edits([](Adjustment& adjustment) {
        adjustment.values.cpu_shares = 512;
        adjustment.Wide().environment.Set("A", "1");
      }));
  TestFront created(pipeline_);
  EXPECT_TRUE(created.OnReplyOf(0));
  EXPECT_THAT(
      pipeline_.owners().Of(ContainerId("id")),
      ElementsAre(
          FieldOwner{.change = {.field = Field::kCpuShares}, .stage = "hooks", .value = "512"},
          FieldOwner{.change = {.field = Field::kEnvironment, .key = "A"}, .stage = "hooks"}));
}

TEST_F(PipelineTest, ReadsTheDetailsThatAStageWants) {
  size_t mounts = 0;
  Add({.name = "a", .details = {Detail::kMounts}},
      [&mounts](auto& call, Request& request, const Adjustment&) {
        mounts = request.Details({}).mounts.size();
        call.Pass();
      });
  TestFront front(pipeline_);
  EXPECT_EQ(mounts, 1u);
}

TEST_F(PipelineTest, ARefusalRollsBackAllEarlierStages) {
  FunctionStage& first = Add("first");
  FunctionStage& second = Add("second", Refuses(ResourceExhausted("no room")));
  TestFront front(pipeline_);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kResourceExhausted, HasSubstr("no room")));
  EXPECT_EQ(first.rolled_back, 1);
  EXPECT_EQ(second.rolled_back, 0);
  EXPECT_EQ(first.calls() + second.calls(), 0u);
}

TEST_F(PipelineTest, AStageThatHangsDelaysItsOwnCallOnlyAndUntilItsDeadline) {
  std::vector<LateAnswer> answers;
  bool hang = true;
  FunctionStage& stage = Add({.name = "slow", .deadline = milliseconds(100)},
                             [&](auto& call, Request&, const Adjustment&) {
                               if (!hang) return call.Pass();
                               answers.push_back(call.AnswerLater());
                             });
  TestFront hung(pipeline_);
  hang = false;
  TestFront other(pipeline_);
  EXPECT_THAT(other.decided, testing::Optional(OkStatus()));

  clock_.Advance(milliseconds(99));
  EXPECT_EQ(hung.decided, std::nullopt);
  clock_.Advance(milliseconds(1));
  EXPECT_THAT(*hung.decided,
              Fails(StatusCode::kDeadlineExceeded, AllOf(HasSubstr("slow"), HasSubstr("100 ms"))));
  answers[0].Pass();
  EXPECT_EQ(stage.calls(), 1u);  // the one of the other call
}

// A stage that answers at once is not waited for.
TEST_F(PipelineTest, WhatCallsWaitForIsMeasured) {
  std::vector<LateAnswer> answers;
  Add("prompt");
  Add("slow",
      [&](auto& call, Request&, const Adjustment&) { answers.push_back(call.AnswerLater()); });
  TestFront front(pipeline_);
  ASSERT_EQ(answers.size(), 1u);
  answers[0].Pass();
  EXPECT_THAT(front.decided, testing::Optional(OkStatus()));
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_stage_wait_seconds_count{stage="slow"} 1)"));
  EXPECT_THAT(Scrape(), testing::Not(HasSubstr(R"(stage_wait_seconds_count{stage="prompt"})")));
}

TEST_F(PipelineTest, AStageWhoseFailureIsIgnoredIsLeftOut) {
  FunctionStage& failing =
      Add({.name = "a", .failure = FailurePolicy::kIgnore},
          [](auto& call, Request&, const Adjustment&) { call.Fail(Unavailable("no connection")); });
  bool saw_reply = false;
  failing.after = [&saw_reply](auto&, const Outcome&) { saw_reply = true; };
  TestFront front(pipeline_);
  EXPECT_THAT(front.decided, testing::Optional(OkStatus()));
  EXPECT_EQ(pipeline_.ignored_failures(), 1u);
  EXPECT_THAT(Scrape(), HasSubstr(R"(cri_resmgr_ignored_failures_total{stage="a"} 1)"));
  EXPECT_TRUE(front.OnReplyOf(0));
  EXPECT_FALSE(saw_reply);
}

TEST_F(PipelineTest, StagesWhoseFailureIsIgnoredAreNotWaitedForInAHurry) {
  std::vector<LateAnswer> answers;
  const auto waits = [&answers](auto& call, Request&, const Adjustment&) {
    answers.push_back(call.AnswerLater());
  };
  Add({.name = "a", .failure = FailurePolicy::kIgnore}, waits);
  Add("b", waits);
  Add({.name = "c", .failure = FailurePolicy::kIgnore}, waits);
  TestFront front(pipeline_);
  ASSERT_EQ(answers.size(), 1u);
  front.call.HurryOptional();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(front.decided, std::nullopt) << "the second stage is needed";
  answers[1].Pass();
  EXPECT_THAT(front.decided, testing::Optional(OkStatus()));
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(pipeline_.ignored_failures(), 2u);
}

TEST_F(PipelineTest, AStageThatDropsItsAnswerHasFailed) {
  Add("dead", [](auto& call, Request&, const Adjustment&) { call.AnswerLater(); });
  TestFront front(pipeline_);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kUnavailable, HasSubstr("dead")));
}

TEST_F(PipelineTest, ARefusalIsNotIgnored) {
  Add({.name = "a", .failure = FailurePolicy::kIgnore}, Refuses(ResourceExhausted("no room")));
  TestFront front(pipeline_);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kResourceExhausted, HasSubstr("no room")));
}

TEST_F(PipelineTest, AReplyWaitsForTheStageThatHoldsIt) {
  std::optional<ReplyHold> hold;
  std::vector<std::string> order;
  FunctionStage& first = Add("first");
  first.after = [&](auto&, const Outcome&) { order.emplace_back("first"); };
  FunctionStage& second = Add("second");
  second.after = [&](auto& call, const Outcome&) {
    order.emplace_back("second");
    hold.emplace(call.HoldReply());
  };
  TestFront front(pipeline_);

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
  FunctionStage& stage = Add({.name = "slow", .deadline = milliseconds(100)});
  stage.after = [&hold](auto& call, const Outcome&) { hold.emplace(call.HoldReply()); };
  TestFront front(pipeline_);
  EXPECT_FALSE(front.OnReplyOf(0));
  clock_.Advance(milliseconds(100));
  EXPECT_TRUE(front.reply_seen);
  EXPECT_EQ(pipeline_.ignored_failures(), 1u);
}

TEST_F(PipelineTest, AStageTurnsAGoodReplyIntoAnError) {
  std::vector<Outcome> seen;
  FunctionStage& first = Add("first");
  first.after = [&seen](auto&, const Outcome& outcome) { seen.push_back(outcome); };
  FunctionStage& second = Add("second");
  second.after = [](auto& call, const Outcome&) { call.FailReply(Unavailable("undone")); };
  TestFront front(pipeline_);
  EXPECT_TRUE(front.OnReplyOf(0));
  EXPECT_THAT(front.call.reply_error(), Fails(StatusCode::kUnavailable, "undone"));
  // The runtime's action is undone, or is about to be.
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_FALSE(seen[0].known);
}

TEST_F(PipelineTest, AStageTurnsAReplyThatItHoldsIntoAnError) {
  std::optional<ReplyHold> hold;
  FunctionStage& stage = Add("stage");
  stage.after = [&hold](auto& call, const Outcome&) { hold.emplace(call.HoldReply()); };
  TestFront front(pipeline_);
  EXPECT_FALSE(front.OnReplyOf(0));
  hold->Fail(Unavailable("undone"));
  EXPECT_TRUE(front.reply_seen);
  EXPECT_THAT(front.call.reply_error(), Fails(StatusCode::kUnavailable, "undone"));
}

TEST_F(PipelineTest, TheRuntimesOwnErrorStays) {
  FunctionStage& stage = Add("stage");
  stage.after = [](auto& call, const Outcome&) { call.FailReply(Unavailable("undone")); };
  TestFront front(pipeline_);
  EXPECT_TRUE(front.OnReplyOf(13));
  EXPECT_THAT(front.call.reply_error(), OkStatus());
}

TEST_F(PipelineTest, AStageThatIsTakenOutSeesItsCallsEnd) {
  int replies = 0;
  FunctionStage& stage = Add("a");
  stage.after = [&replies](auto&, const Outcome& outcome) { replies += outcome.ok() ? 1 : 0; };
  TestFront front(pipeline_);
  pipeline_.Remove(stage);
  EXPECT_EQ(stage.calls(), 1u);
  EXPECT_TRUE(front.OnReplyOf(0));
  EXPECT_EQ(replies, 1);
  EXPECT_EQ(stage.calls(), 0u);
}

TEST_F(PipelineTest, AStageFailsThatSetsWhatTheProtocolHasNoPlaceFor) {
  FunctionStage& first = Add("first");
  Add("hooks",
      Edits([](Adjustment& adjustment) { adjustment.Wide().hooks = {{.path = "/bin/hook"}}; }));
  TestFront front(pipeline_);
  EXPECT_THAT(*front.decided, Fails(StatusCode::kUnimplemented,
                                    AllOf(HasSubstr("stage hooks"), HasSubstr("sets hooks"))));
  EXPECT_EQ(first.rolled_back, 1);
}

TEST_F(PipelineTest, ARequestThatCannotBeForwardedRollsBackAllStages) {
  FunctionStage& stage = Add("a");
  bool saw_reply = false;
  stage.after = [&saw_reply](auto&, const Outcome&) { saw_reply = true; };
  TestFront front(pipeline_);
  front.call.RollBack();
  EXPECT_EQ(stage.rolled_back, 1);
  EXPECT_TRUE(front.call.over());
  EXPECT_FALSE(saw_reply);
}

TEST_F(PipelineTest, WithoutAReplyTheOutcomeIsUnknown) {
  std::optional<bool> known;
  FunctionStage& stage = Add("a");
  stage.after = [&known](auto&, const Outcome& outcome) { known = outcome.known; };
  { TestFront front(pipeline_); }
  EXPECT_EQ(known, false);
  EXPECT_EQ(stage.rolled_back, 0);
}

}  // namespace
}  // namespace resmgr
