// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/cgroup_access.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/history.h"
#include "pkg/resmgr/refusal_log.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/captured_log.h"

namespace resmgr {
namespace {

using std::chrono::milliseconds;
using test::FirstFitPolicy;
using test::TestNode;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using enum QosClass;

// Causes that are looked for where the runtime refuses CPUs.

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
    node_.runtime.AnswerLists();
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
      node_.runtime.AnswerLists();
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

// Containers whose update the runtime refuses, and whose cpuset is written past it.

Status IdleAnswer() {
  return MakeStatus(StatusCode::kUnknown, "write cpu.weight: invalid argument");
}

std::string Named(const ContainerId& id) {
  return std::string(id.value());
}

// Answers when the test says so.
class FakeWriter final : public CpusetWriter {
 public:
  struct Call {
    Subject subject;
    Answer answer;
  };
  void Write(Subject subject, Answer answer) override {
    history.push_back(
        fmt::format("{} {}", subject.id.value(), subject.cpus ? subject.cpus->ToString() : "-"));
    calls.push_back({std::move(subject), std::move(answer)});
  }
  void AnswerFirst(const Status& status) {
    const Call call = calls.front();
    calls.erase(calls.begin());
    call.answer.done(status);
  }

  std::vector<Call> calls;
  std::vector<std::string> history;
};

class WrittenCpusetsTest : public ::testing::Test {
 protected:
  WrittenCpusetsTest() { shared_ = node_.Run("shared", kBurstable, 100); }
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.observer = &history_;
    options.cpuset_writer = &writer_;
    options.refused_updates = RefusedUpdates::kWrite;
    return options;
  }
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  // The runtime refuses all of the shared container, and carries out the rest.
  void AnswerAll() {
    while (!runtime().updates.empty()) {
      const bool refused = refuses_ && runtime().updates.front().id == shared_;
      runtime().Answer(0, refused ? IdleAnswer() : OkStatus());
    }
    runtime().AnswerLists();
  }
  void AnswerWrites() {
    while (!writer_.calls.empty())
      writer_.AnswerFirst(OkStatus());
  }
  ContainerId Create(std::string_view name) {
    const StatusOr<ContainerId> id = node_.Create(name, kGuaranteed, 1000);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ContainerId());
  }
  // The exclusive container that the shared one makes room for.
  ContainerId RunApp() {
    ContainerId app = Create("app");
    AnswerAll();
    AnswerWrites();
    node_.Start(app);
    return app;
  }
  ContainerKey Key() const { return node_.Known(shared_)->key; }
  void RunFor(milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    ASSERT_TRUE(node_.RunUntil([&] {
      AnswerAll();
      AnswerWrites();
      return std::chrono::steady_clock::now() > end;
    }));
  }

  test::CapturedLog log_;
  History history_;
  FakeWriter writer_;
  bool refuses_ = true;
  ContainerId shared_;
  test::CrashingFileSystem files_{1};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

TEST_F(WrittenCpusetsTest, AStartGoesOnWhenTheCpusetIsWritten) {
  const ContainerId app = Create("app");
  AnswerAll();
  ASSERT_THAT(writer_.history, ElementsAre(Named(shared_) + " 0,2-7"));
  const test::AskedStart start(node_.manager(), app);
  EXPECT_FALSE(start.answered()) << "it is not written yet";
  AnswerWrites();
  EXPECT_TRUE(start.admitted()) << start.answer();
  EXPECT_TRUE(node_.manager().WrittenPastRuntime(Key()));
  EXPECT_FALSE(node_.manager().Settled(Key())) << "the runtime does not know";
  EXPECT_EQ(log_.Times("its cpuset was written into its cgroup past the runtime"), 1)
      << log_.Text();
  EXPECT_EQ(ToString(history_.Last(1).front()->event), "written");
  EXPECT_THAT(std::string(Message(node_.manager().LastUpdateError(Key()))),
              AllOf(HasSubstr("cpu.weight: invalid argument"), HasSubstr("past the runtime")));
}

TEST_F(WrittenCpusetsTest, NothingIsWrittenWhereTheConfigurationSaysWait) {
  node_.manager().SetRefusedUpdates(RefusedUpdates::kWait);
  Create("app");
  AnswerAll();
  EXPECT_THAT(writer_.history, IsEmpty());
  node_.manager().SetRefusedUpdates(RefusedUpdates::kWrite);
  EXPECT_TRUE(node_.RunUntil([this] {
    AnswerAll();
    return !writer_.history.empty();
  })) << "from the next refusal on";
}

TEST_F(WrittenCpusetsTest, AContainerWithExclusiveCpusIsLeftToTheRuntime) {
  refuses_ = false;
  const ContainerId app = RunApp();
  node_.manager().SendAgain(node_.Known(app)->key);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
    runtime().Answer(0, IdleAnswer());
  }
  EXPECT_THAT(writer_.history, IsEmpty());
}

TEST_F(WrittenCpusetsTest, NoAnswerOfTheRuntimeIsNoRefusal) {
  Create("app");
  ASSERT_THAT(runtime().updates, SizeIs(1));
  runtime().Answer(0, DeadlineExceeded("the shim hangs"));
  EXPECT_THAT(writer_.history, IsEmpty());
}

TEST_F(WrittenCpusetsTest, AFailedWriteIsAsARefusal) {
  const ContainerId app = Create("app");
  AnswerAll();
  ASSERT_THAT(writer_.calls, SizeIs(1));
  writer_.AnswerFirst(FailedPrecondition("cpuset.cpus: Read-only file system"));
  EXPECT_THAT(std::string(Message(node_.manager().LastUpdateError(Key()))),
              AllOf(HasSubstr("cpu.weight: invalid argument"), HasSubstr("Read-only file system")));
  const test::AskedStart start(node_.manager(), app);
  EXPECT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    while (!writer_.calls.empty())
      writer_.AnswerFirst(FailedPrecondition("cpuset.cpus: Read-only file system"));
    return start.answered();
  }));
  EXPECT_EQ(start.answer().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(start.answer())), HasSubstr("Read-only file system"));
  EXPECT_EQ(log_.Times("cannot update container ns/shared/shared"), 1) << log_.Text();
}

// The result of the write is unknown: the cgroup may have either value.
TEST_F(WrittenCpusetsTest, AWriteThatEndsLateIsFollowedByAnother) {
  Create("app");
  AnswerAll();
  ASSERT_THAT(writer_.calls, SizeIs(1));
  const FakeWriter::Call hung = writer_.calls.front();
  writer_.AnswerFirst(DeadlineExceeded("the cgroup took no write"));
  refuses_ = false;
  ASSERT_TRUE(node_.RunUntil([this] {
    AnswerAll();
    return node_.manager().Settled(Key());
  }));
  hung.answer.late();
  EXPECT_FALSE(node_.manager().Settled(Key()));
  ASSERT_THAT(runtime().updates, SizeIs(1));
  AnswerAll();
  EXPECT_TRUE(node_.manager().Settled(Key()));
}

// The runtime reports its old notes.
TEST_F(WrittenCpusetsTest, ReportsOfTheRuntimeMakeNoFurtherWrites) {
  RunApp();
  const size_t writes = writer_.history.size();
  for (int i = 0; i < 5; ++i) {
    node_.manager().synchronizer().Refresh([](const Status&) {});
    AnswerAll();
    AnswerWrites();
  }
  EXPECT_EQ(writer_.history.size(), writes);
  EXPECT_TRUE(node_.manager().WrittenPastRuntime(Key()));
}

// A refused update may have restored the values of the runtime's notes.
TEST_F(WrittenCpusetsTest, TheRuntimeIsAskedRarelyAndItIsWrittenAgainAfterEachRefusal) {
  RunApp();
  const size_t writes = writer_.history.size();
  ASSERT_NO_FATAL_FAILURE(RunFor(milliseconds(150)));
  EXPECT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    AnswerWrites();
    return writer_.history.size() > writes;
  }));
  const size_t more = writer_.history.size() - writes;
  EXPECT_LE(more, 3U) << "each 48 ms at most, where a refusal is retried each 4 ms";
  EXPECT_EQ(log_.Times("past the runtime"), 1) << log_.Text();
}

TEST_F(WrittenCpusetsTest, AStartWaitsWhileTheRuntimeIsAskedAgain) {
  RunApp();
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
  const ContainerId other = Create("other");
  const test::AskedStart start(node_.manager(), other);
  EXPECT_FALSE(start.answered());
  AnswerAll();
  AnswerWrites();
  AnswerAll();
  AnswerWrites();
  EXPECT_TRUE(start.admitted()) << start.answer();
  EXPECT_EQ(writer_.history.back(), Named(shared_) + " 0,3-7");
}

TEST_F(WrittenCpusetsTest, ASuccessfulUpdateEndsIt) {
  RunApp();
  refuses_ = false;
  ASSERT_TRUE(node_.RunUntil([this] {
    AnswerAll();
    return node_.manager().Settled(Key());
  }));
  EXPECT_FALSE(node_.manager().WrittenPastRuntime(Key()));
  EXPECT_TRUE(node_.manager().LastUpdateError(Key()).ok());
  EXPECT_EQ(runtime().CpusOf(shared_), "0,2-7");
  EXPECT_EQ(log_.Times("the runtime updates container ns/shared/shared again"), 1) << log_.Text();
}

TEST_F(WrittenCpusetsTest, ARestartedDaemonWritesItAgainAndMovesNobodyElse) {
  node_.KeepState(files_);
  AnswerAll();
  const ContainerId app = RunApp();
  ASSERT_EQ(node_.Exclusive(app), "1");
  node_.FlushState();
  writer_.history.clear();
  writer_.calls.clear();
  runtime().history.clear();
  node_.Restart();
  AnswerAll();
  AnswerWrites();
  EXPECT_EQ(node_.Exclusive(app), "1");
  EXPECT_EQ(node_.Placed(shared_), "0,2-7");
  EXPECT_TRUE(node_.manager().WrittenPastRuntime(Key()));
  EXPECT_THAT(writer_.history, ElementsAre(Named(shared_) + " 0,2-7"));
  EXPECT_THAT(runtime().history, Each(StartsWith(Named(shared_) + " "))) << "nobody else is told";
}

TEST_F(WrittenCpusetsTest, WhatIsReleasedIsWrittenToo) {
  RunApp();
  std::optional<Status> done;
  auto letting_go = std::make_unique<FirstFitPolicy>(node_.machine());
  letting_go->spoil = [this](Plan& plan) {
    plan.changes.clear();
    node_.manager().snapshot().ForEachContainer([&plan](const Pod&, const Container& container) {
      plan.Change(container.key).reason = "not pinned";
    });
  };
  node_.manager().policy_changes().Set(std::move(letting_go),
                                       [&done](const Status& status) { done = status; });
  ASSERT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    AnswerWrites();
    return done.has_value() && node_.manager().policy_changes().AllReleased();
  }));
  EXPECT_TRUE(done->ok()) << *done;
  EXPECT_EQ(writer_.history.back(), Named(shared_) + " 0-7");
}

}  // namespace
}  // namespace resmgr
