// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/hand_over.h"

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/node/testing/fake_door.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunFor;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A daemon with a door and one further socket; the test plays the other daemon.
class HandOverTest : public testing::Test {
 protected:
  HandOverTest() {
    options_.end = [this] { ended_ = true; };
    options_.patience = milliseconds(20'000);
  }
  void Serve() {
    own_ = ListeningSocket::Create(directory_.File("admin.sock"));
    hand_over_.emplace(options_);
  }
  void Connect() {
    auto socket = ConnectUnix(options_.socket);
    ASSERT_TRUE(socket.ok()) << socket.status();
    other_.emplace(*std::move(socket), HandOverChannel::Files::kTake);
  }
  void Say(const std::string& message) { ASSERT_EQ(other_->Send(message), OkStatus()); }
  // The next message; "" for the end of the connection.
  std::string Hear() {
    std::string heard;
    const auto poll = loop_.Every(milliseconds(1), [&] {
      const auto message = other_->Next();
      if (message.ok() && message->has_value()) heard = **message;
      if (!message.ok() || message->has_value()) loop_.Stop();
    });
    const auto late = loop_.After(milliseconds(30'000), [&] {
      ADD_FAILURE() << "nothing comes";
      loop_.Stop();
    });
    loop_.Run();
    return heard;
  }
  // Asks up to the sockets: two of them, including that of the hand-over itself.
  void Ask() {
    Connect();
    Say("take-over 1 9.9");
    for (int i = 0; i < 2; ++i) {
      const std::string message = Hear();
      ASSERT_THAT(message, HasSubstr("socket own "));
      EXPECT_TRUE(other_->ReadSocket(message).ok());
    }
    ASSERT_EQ(Hear(), "all 1.0");
  }

  TempDir directory_;
  EventLoop loop_;
  test::FakeDoor door_;
  HandOver::Options options_{.loop = loop_,
                             .door = door_,
                             .version = "1.0",
                             .socket = directory_.File("relay.sock.take-over")};
  bool ended_ = false;
  StatusOr<ListeningSocket> own_ = Unavailable("not yet");
  std::optional<HandOver> hand_over_;
  std::optional<HandOverChannel> other_;
};

TEST_F(HandOverTest, EndsOnceTheOtherOneIsReadyAndNothingIsInFlight) {
  Serve();
  door_.drains = false;
  Ask();
  EXPECT_THAT(*door_.history(), IsEmpty()) << "it serves until the other one is ready";
  Say("drain");
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(*door_.history(), ElementsAre("pause"));
  EXPECT_EQ(*other_->Next(), std::nullopt);
  door_.paused();
  EXPECT_EQ(Hear(), "drained");
  EXPECT_FALSE(ended_);
  Say("end");
  RunFor(loop_, milliseconds(20));
  EXPECT_TRUE(ended_);
  EXPECT_EQ(*other_->Next(), std::nullopt) << "the connection is open until the end";
  hand_over_.reset();
  EXPECT_EQ(Hear(), "");
  EXPECT_THAT(*door_.history(), ElementsAre("pause"));
}

TEST_F(HandOverTest, ServesOnWhenTheOtherOneDiesAtAnyStep) {
  Serve();
  for (int step = 0; step < 5; ++step) {
    door_.drains = step != 3;
    step == 0 ? Connect() : Ask();
    if (step >= 2) Say("drain");
    if (step == 2 || step == 4) {
      EXPECT_EQ(Hear(), "drained");
    }
    RunFor(loop_, milliseconds(20));
    const auto before = door_.history()->size();
    other_.reset();
    RunFor(loop_, milliseconds(20));
    EXPECT_EQ(door_.history()->size(), before + (step >= 2 ? 1 : 0)) << step;
    if (step >= 2) {
      EXPECT_EQ(door_.history()->back(), "resume");
    }
    // A late callback of the door does not count for the next time.
    if (step == 3) door_.paused();
  }
  EXPECT_FALSE(ended_);
  EXPECT_TRUE(OpenSockets::Instance().Has(directory_.File("admin.sock")));
  own_ = Unavailable("ended");
  EXPECT_FALSE(ConnectUnix(directory_.File("admin.sock")).ok());
}

TEST_F(HandOverTest, ASocketThatThePauseClosedIsTheDoorsAgain) {
  Serve();
  Ask();
  own_ = Unavailable("paused");
  const auto waits = ConnectUnix(directory_.File("admin.sock"));
  ASSERT_TRUE(waits.ok()) << waits.status();
  other_.reset();
  RunFor(loop_, milliseconds(20));
  own_ = ListeningSocket::Create(directory_.File("admin.sock"));
  ASSERT_TRUE(own_.ok()) << own_.status();
  EXPECT_TRUE(own_->Accept()->has_value());
}

TEST_F(HandOverTest, ADoorThatCannotServeAgainTriesAgain) {
  Serve();
  Ask();
  Say("drain");
  EXPECT_EQ(Hear(), "drained");
  door_.resume_failure = Unavailable("no file");
  other_.reset();
  RunFor(loop_, milliseconds(1'500));
  EXPECT_THAT(*door_.history(), ElementsAre("pause", "resume", "resume"));
}

// The next one asks while this one still tries to serve again.
TEST_F(HandOverTest, ADoorIsNotResumedForAFormerOneOnceTheNextOnePausesIt) {
  Serve();
  Ask();
  Say("drain");
  EXPECT_EQ(Hear(), "drained");
  door_.resume_failure = Unavailable("no file");
  other_.reset();
  RunFor(loop_, milliseconds(20));
  ASSERT_THAT(*door_.history(), ElementsAre("pause", "resume"));
  Ask();
  Say("drain");
  EXPECT_EQ(Hear(), "drained");
  RunFor(loop_, milliseconds(1'500));
  EXPECT_THAT(*door_.history(), ElementsAre("pause", "resume", "pause"));
}

TEST_F(HandOverTest, TheEndOfAFormerPauseIsNotThatOfTheNextOne) {
  Serve();
  door_.drains = false;
  Ask();
  Say("drain");
  RunFor(loop_, milliseconds(20));
  const std::function<void()> former = door_.paused;
  other_.reset();
  RunFor(loop_, milliseconds(20));
  Ask();
  Say("drain");
  RunFor(loop_, milliseconds(20));
  ASSERT_THAT(*door_.history(), ElementsAre("pause", "resume", "pause"));
  former();
  RunFor(loop_, milliseconds(20));
  EXPECT_EQ(*other_->Next(), std::nullopt);
  door_.paused();
  EXPECT_EQ(Hear(), "drained");
}

TEST_F(HandOverTest, EveryStepHasADeadline) {
  // Longer than this test takes between two steps on a busy machine.
  options_.patience = milliseconds(1'000);
  Serve();
  Connect();
  EXPECT_THAT(Hear(), HasSubstr("no it says nothing for 1000 ms"));
  Ask();
  EXPECT_THAT(Hear(), HasSubstr("no it does not get ready"));
  Ask();
  Say("drain");
  EXPECT_EQ(Hear(), "drained");
  EXPECT_THAT(Hear(), HasSubstr("no it does not go on"));
  EXPECT_EQ(Hear(), "");
  EXPECT_THAT(*door_.history(), ElementsAre("pause", "resume"));
}

TEST_F(HandOverTest, NonsenseIsRefused) {
  Serve();
  for (const char* const word : {"take-over 2 x", "end", "drain"}) {
    Connect();
    Say(word);
    EXPECT_THAT(Hear(), HasSubstr("out of turn"));
  }
  Ask();
  Say("end");
  EXPECT_THAT(Hear(), HasSubstr("out of turn"));
  EXPECT_THAT(*door_.history(), IsEmpty());
  EXPECT_FALSE(ended_);
}

TEST_F(HandOverTest, OneAtATimeAndOfTheSameUser) {
  Serve();
  Ask();
  std::optional<HandOverChannel> first = std::move(other_);
  Connect();
  EXPECT_THAT(Hear(), HasSubstr("is taking over already"));
  other_ = std::move(first);
  Say("drain");
  EXPECT_EQ(Hear(), "drained");
  hand_over_.reset();
  options_.user = ::geteuid() + 1;
  hand_over_.emplace(options_);
  Connect();
  EXPECT_THAT(Hear(), HasSubstr("may not"));
}

TEST_F(HandOverTest, TellsWhyItMayNotBeReplaced) {
  options_.refusal = "the service manager would start it again";
  Serve();
  Status begun;
  std::thread other([&] {
    begun = TakeOver::Begin({.socket = options_.socket, .version = "2"}).status();
    loop_.Stop();
  });
  loop_.Run();
  other.join();
  EXPECT_EQ(begun.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(begun)), HasSubstr("start it again"));
}

TEST_F(HandOverTest, AfterTheBeginOfAnEndNothingIsHandedOver) {
  Serve();
  Ask();
  hand_over_->Stop();
  Say("drain");
  RunFor(loop_, milliseconds(20));
  EXPECT_THAT(*door_.history(), IsEmpty());
  EXPECT_FALSE(OpenSockets::Instance().Has(options_.socket));
  hand_over_.reset();
  EXPECT_EQ(Hear(), "") << "it goes on when this one has ended";
}

TEST(TakeOverTest, WhereNoDaemonServesThereIsNothingToTake) {
  const TempDir directory;
  const auto begun = TakeOver::Begin({.socket = directory.File("relay.sock.take-over")});
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_EQ(*begun, nullptr);
}

TEST(TakeOverTest, ADaemonThatDoesNotAnswerIsNotWaitedFor) {
  const TempDir directory;
  const auto silent = ListeningSocket::Create(directory.File("take-over"));
  const auto begun =
      TakeOver::Begin({.socket = directory.File("take-over"), .answer = milliseconds(20)});
  EXPECT_EQ(begun.status().code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace resmgr
