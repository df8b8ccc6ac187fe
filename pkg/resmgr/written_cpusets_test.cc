// SPDX-License-Identifier: Apache-2.0
// Containers whose update the runtime refuses, and whose cpuset is written past it.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/history.h"
#include "pkg/resmgr/testing/manager_fixture.h"
#include "pkg/state/testing/crashing_file_system.h"
#include "test/support/captured_log.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using enum QosClass;
using std::chrono::milliseconds;

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
    while (!runtime().lists.empty())
      runtime().AnswerList();
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
    const ContainerId app = Create("app");
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
  std::optional<Status> decided;
  const auto wait =
      node_.manager().AdmitStart(app, [&decided](const Status& status) { decided = status; });
  EXPECT_FALSE(decided.has_value()) << "it is not written yet";
  AnswerWrites();
  ASSERT_TRUE(decided.has_value());
  EXPECT_TRUE(decided->ok()) << *decided;
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
  std::optional<Status> decided;
  const auto wait =
      node_.manager().AdmitStart(app, [&decided](const Status& status) { decided = status; });
  EXPECT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    while (!writer_.calls.empty())
      writer_.AnswerFirst(FailedPrecondition("cpuset.cpus: Read-only file system"));
    return decided.has_value();
  }));
  EXPECT_EQ(decided->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(*decided)), HasSubstr("Read-only file system"));
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
    node_.manager().Refresh([](const Status&) {});
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
  std::optional<Status> decided;
  const auto wait =
      node_.manager().AdmitStart(other, [&decided](const Status& status) { decided = status; });
  EXPECT_FALSE(decided.has_value());
  AnswerAll();
  AnswerWrites();
  AnswerAll();
  AnswerWrites();
  ASSERT_TRUE(decided.has_value());
  EXPECT_TRUE(decided->ok()) << *decided;
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
  node_.manager().SetPolicy(std::move(letting_go),
                            [&done](const Status& status) { done = status; });
  ASSERT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    AnswerWrites();
    return done.has_value() && node_.manager().AllReleased();
  }));
  EXPECT_TRUE(done->ok()) << *done;
  EXPECT_EQ(writer_.history.back(), Named(shared_) + " 0-7");
}

}  // namespace
}  // namespace resmgr
