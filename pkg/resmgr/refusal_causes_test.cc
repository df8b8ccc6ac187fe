// SPDX-License-Identifier: Apache-2.0
// Causes that are looked for where the runtime refuses CPUs.
#include "pkg/resmgr/refusal_causes.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/refusal_log.h"
#include "pkg/resmgr/testing/manager_fixture.h"
#include "pkg/resmgr/update_remedies.h"
#include "test/support/captured_log.h"

namespace resmgr {
namespace {

using test::TestNode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using enum QosClass;

constexpr std::string_view kRefusal =
    "failed to write \"0,2-7\": write /sys/fs/cgroup/cpuset/x/cpuset.cpus: device or resource busy";
constexpr std::string_view kCause = "/x/docker has CPU 1: write fewer into its cpuset.cpus";

// Answers when the test says so.
class FakeCauses final : public RefusalCauses {
 public:
  void Find(Subject subject, std::function<void(std::string cause)> done) override {
    subjects.push_back(std::move(subject));
    waiting.push_back(std::move(done));
  }
  void Answer(std::string_view cause) {
    const auto done = std::move(waiting.front());
    waiting.erase(waiting.begin());
    done(std::string(cause));
  }

  std::vector<Subject> subjects;
  std::vector<std::function<void(std::string cause)>> waiting;
};

class RefusalCausesTest : public ::testing::Test {
 protected:
  RefusalCausesTest() {
    shared_ = node_.Run("shared", kBurstable, 100);
    const StatusOr<ContainerId> app = node_.Create("app", kGuaranteed, 1000);
    EXPECT_TRUE(app.ok()) << app.status();
    app_ = app.value_or(ContainerId());
  }
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.causes = &causes_;
    return options;
  }
  Status LastError() { return node_.manager().LastUpdateError(node_.Known(shared_)->key); }
  void Refuse(const Status& why) {
    ASSERT_THAT(node_.runtime.updates, SizeIs(1));
    node_.runtime.Answer(0, why);
  }

  test::CapturedLog log_;
  FakeCauses causes_;
  ContainerId shared_;
  ContainerId app_;
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

TEST_F(RefusalCausesTest, ARefusedUpdateNamesTheCause) {
  Refuse(Internal("{}", kRefusal));
  ASSERT_THAT(causes_.subjects, SizeIs(1));
  EXPECT_EQ(causes_.subjects[0].id, shared_);
  EXPECT_EQ(causes_.subjects[0].cpus->ToString(), "0,2-7");
  EXPECT_THAT(node_.runtime.updates, IsEmpty()) << "it is not tried again yet";
  causes_.Answer(kCause);
  EXPECT_EQ(Message(LastError()), fmt::format("{}; likely cause: {}", kRefusal, kCause));
  EXPECT_EQ(UpdateRemedy(Pod(), Container(), LastError()).find("remove the likely cause, or"), 0U);
  ASSERT_TRUE(node_.RunUntil([this] {
    while (!node_.runtime.lists.empty())
      node_.runtime.AnswerList();
    return log_.Times("likely cause") > 0;
  }));
  // The next try may work.
  ASSERT_TRUE(node_.RunUntil([this] { return !node_.runtime.updates.empty(); }));
  node_.runtime.Answer(0);
  EXPECT_TRUE(LastError().ok());
}

TEST_F(RefusalCausesTest, WithoutACauseTheAnswerStands) {
  Refuse(Internal("{}", kRefusal));
  causes_.Answer("");
  EXPECT_EQ(Message(LastError()), kRefusal);
}

TEST_F(RefusalCausesTest, OtherAnswersHaveNone) {
  Refuse(Internal("the disk is on fire"));
  EXPECT_THAT(causes_.subjects, IsEmpty());
  EXPECT_EQ(Message(LastError()), "the disk is on fire");
}

// A look that times out finds nothing.
TEST_F(RefusalCausesTest, ALookThatFindsNothingMakesTheSameFailureNoNews) {
  // Each try sends all values first, then CPUs and memory nodes alone.
  const auto refuse = [this](std::string_view why, std::string_view cause) {
    ASSERT_TRUE(node_.RunUntil([&] {
      while (!node_.runtime.lists.empty())
        node_.runtime.AnswerList();
      while (!node_.runtime.updates.empty())
        node_.runtime.Answer(0, Internal("{}", why));
      return !causes_.waiting.empty();
    }));
    causes_.Answer(cause);
  };
  const std::string other = fmt::format("{} again", kRefusal);
  refuse(kRefusal, kCause);
  refuse(kRefusal, "");
  EXPECT_EQ(Message(LastError()), fmt::format("{}; likely cause: {}", kRefusal, kCause));
  refuse(kRefusal, "another");
  EXPECT_EQ(Message(LastError()), fmt::format("{}; likely cause: another", kRefusal));
  refuse(other, "");
  EXPECT_EQ(Message(LastError()), other);
  ASSERT_TRUE(node_.RunUntil([this] { return !node_.runtime.updates.empty(); }));
  node_.runtime.Answer(0);
  EXPECT_TRUE(LastError().ok());
}

// A later event has the last word.
TEST_F(RefusalCausesTest, ACauseThatComesLateIsMoot) {
  Refuse(Internal("{}", kRefusal));
  node_.manager().RuntimeDisconnected();
  causes_.Answer(kCause);
  EXPECT_THAT(std::string(Message(LastError())), testing::Not(HasSubstr("likely cause")));
}

TEST_F(RefusalCausesTest, AContainerThatIsGoneMeanwhileIsForgotten) {
  Refuse(Internal("{}", kRefusal));
  node_.manager().ContainerRemoved(shared_);
  causes_.Answer(kCause);
  EXPECT_EQ(node_.Known(shared_), nullptr);
}

// The client gets the runtime's answer, and the log the cause.
TEST_F(RefusalCausesTest, ARefusedStartHasItsCauseInTheLog) {
  node_.manager().RefusedByRuntime(app_, kRefusal);
  ASSERT_THAT(causes_.subjects, SizeIs(1));
  EXPECT_EQ(causes_.subjects[0].cpus->ToString(), "1");
  node_.manager().StartFailed(app_);
  causes_.Answer(kCause);
  EXPECT_THAT(log_.Text(),
              AllOf(HasSubstr("the runtime refused container ns/app/app: failed to write"),
                    HasSubstr(fmt::format("likely cause: {}", kCause))));
  node_.manager().RefusedByRuntime(app_, "no such image");
  EXPECT_THAT(causes_.waiting, IsEmpty());
  node_.manager().RefusedByRuntime(ContainerId("unknown"), kRefusal);
  EXPECT_THAT(causes_.waiting, IsEmpty());
}

// A kubelet tries again and again.
TEST_F(RefusalCausesTest, ACauseIsLoggedOnceForEachContainer) {
  const auto told = [this] { return log_.Times("the runtime refused container"); };
  const auto refuse = [this](const ContainerId& id, std::string_view cause) {
    node_.manager().RefusedByRuntime(id, kRefusal);
    causes_.Answer(cause);
  };
  for (int i = 0; i < 3; ++i)
    refuse(app_, kCause);
  EXPECT_EQ(told(), 1);
  refuse(app_, "another cause");
  refuse(shared_, kCause);
  EXPECT_EQ(told(), 3);
}

TEST(RefusalLogTest, ManyRefusalsAreCounted) {
  RefusalLog log;
  const RefusalLog::Time start(std::chrono::hours(100));
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(log.Pass(fmt::format("ns/{}/c", i), "cause", start), 0U);
  for (int i = 10; i < 15; ++i)
    EXPECT_EQ(log.Pass(fmt::format("ns/{}/c", i), "cause", start), std::nullopt);
  EXPECT_EQ(log.Pass("ns/0/c", "cause", start + std::chrono::minutes(2)), std::nullopt);
  EXPECT_EQ(log.Pass("ns/14/c", "cause", start + std::chrono::minutes(2)), 5U);
  EXPECT_EQ(log.Pass("ns/0/c", "cause", start + std::chrono::minutes(61)), 0U);
}

}  // namespace
}  // namespace resmgr
