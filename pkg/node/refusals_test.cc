// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/refusals.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/policy/testing/test_snapshot.h"
#include "pkg/resmgr/testing/first_fit_policy.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RefusalsTest : public testing::Test {
 protected:
  // Starts the watch as a new daemon does.
  void Start() {
    refusals_ = std::make_unique<Refusals>(history_, [this] { return now_; });
  }
  // As if the history had restored it from a former daemon.
  void Restore(const std::string& container, Refusals::Time time) {
    history_.Restore({.time = time,
                      .event = History::Event::kRefused,
                      .container = container,
                      .place = std::make_shared<const Place>(),
                      .reason = std::make_shared<const std::string>(),
                      .asked = std::make_shared<const History::Asked>(),
                      .error = "needs 20"});
  }
  Container& Add(const std::string& name) {
    return snapshot_.Add(name, QosClass::kGuaranteed, 2000);
  }
  Observer::Act ActOf(const Container& container) {
    return {.policy = policy_,
            .snapshot = snapshot_,
            .pod = snapshot_.PodOf(container.key),
            .container = container};
  }
  std::string NameOf(const Container& container) {
    return FullName(snapshot_.PodOf(container.key), container.name);
  }

  const Machine machine_ = *LoadMachine("synthetic:core:4 pu:1");
  const test::FirstFitPolicy policy_{machine_};
  test::TestSnapshot snapshot_;
  Refusals::Time now_{std::chrono::hours(1000)};
  History history_;
  std::unique_ptr<Refusals> refusals_;
};

TEST_F(RefusalsTest, AreProblemsForAnHour) {
  Start();
  const Container& web = Add("web");
  EXPECT_THAT(refusals_->problems(), IsEmpty());
  refusals_->OnRefused(ActOf(web), ResourceExhausted("needs 20"));
  now_ += minutes(5);
  refusals_->OnStartRefused(ActOf(web), FailedPrecondition("is in the way"));
  const std::vector<Problem> problems = refusals_->problems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].kind, "refused");
  EXPECT_EQ(problems[0].since, now_ - minutes(5));
  EXPECT_EQ(problems[0].message, NameOf(web) + " was refused 2 times: is in the way");
  EXPECT_THAT(problems[0].objects, ElementsAre(NameOf(web)));
  EXPECT_EQ(problems[0].next, "cri-resmgr-ctl explain " + NameOf(web));
  now_ += minutes(59);
  EXPECT_THAT(refusals_->problems(), SizeIs(1));
  now_ += minutes(2);
  EXPECT_THAT(refusals_->problems(), IsEmpty());
}

TEST_F(RefusalsTest, AContainerThatGotAPlaceIsNone) {
  Start();
  const Container& web = Add("web");
  refusals_->OnRefusedByStage(ActOf(web), ResourceExhausted("a plugin"));
  refusals_->OnPlaced(ActOf(Add("other")));
  EXPECT_THAT(refusals_->problems(), SizeIs(1));
  refusals_->OnPlaced(ActOf(web));
  EXPECT_THAT(refusals_->problems(), IsEmpty());
  now_ += minutes(1);
  refusals_->OnRefusedByStage(ActOf(web), ResourceExhausted("again"));
  ASSERT_THAT(refusals_->problems(), SizeIs(1));
  EXPECT_EQ(refusals_->problems()[0].since, now_ - minutes(1)) << "it was never really placed";
}

TEST_F(RefusalsTest, ManyAreNamedInOne) {
  Start();
  for (int i = 0; i < 8; ++i) {
    now_ += minutes(1);
    refusals_->OnRefused(ActOf(Add("web" + std::to_string(i))), ResourceExhausted("no room"));
  }
  const std::vector<Problem> problems = refusals_->problems();
  ASSERT_THAT(problems, SizeIs(6));
  EXPECT_THAT(problems[0].message, HasSubstr("web7 was refused 1 time: no room"));
  EXPECT_EQ(problems[5].message, "and 3 containers more were refused in the last hour");
  EXPECT_THAT(problems[5].objects, SizeIs(3));
  for (size_t i = 0; i < 2 * Refusals::kMost; ++i)
    refusals_->OnRefused(ActOf(Add("flood" + std::to_string(i))), ResourceExhausted("no room"));
  EXPECT_EQ(refusals_->all().size(), Refusals::kMost);
}

TEST_F(RefusalsTest, SurviveARestart) {
  Restore("default/old/main", now_ - minutes(61));
  Restore("default/web/main", now_ - minutes(30));
  Restore("default/later/main", now_ + minutes(30));
  Start();
  EXPECT_THAT(refusals_->all(), SizeIs(1));
  const std::vector<Problem> problems = refusals_->problems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].message, "default/web/main was refused 1 time: needs 20");
  EXPECT_EQ(problems[0].since, now_ - minutes(30));
}

}  // namespace
}  // namespace resmgr
