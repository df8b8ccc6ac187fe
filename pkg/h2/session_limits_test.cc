// SPDX-License-Identifier: Apache-2.0
// The cost of one peer for others: streams that it does not read, and floods of frames.
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/h2/limits.h"
#include "pkg/h2/memory.h"
#include "pkg/h2/session_fixture.h"
#include "test/support/seed.h"

namespace resmgr::h2 {
namespace {

// A server that answers each request with `size` bytes.
class UnreadTest : public SessionTest {
 protected:
  static constexpr size_t kReply = size_t{1} << 20;

  void AnswerWith(size_t size) {
    // All answers share their memory, which is not under test here.
    server_->on_request = [size,
                           piece = Slice::Copy(std::string(kPiece, 'x'))](Recorder& recorder) {
      recorder.stream->SendHeaders(Answer(), false);
      for (size_t sent = 0; sent < size; sent += kPiece)
        recorder.stream->SendData(piece);
      recorder.stream->SendEnd(Trailers());
    };
  }
  // Opens a stream whose reply the client does not read.
  Recorder& OpenUnread() {
    Recorder& call = OpenRead();
    call.consume = false;
    return call;
  }
  Recorder& OpenRead() {
    Recorder& call = calls_.emplace_back(*client_->session, Request("/a/b"), true);
    return call;
  }
  // Reads all unread replies to their end.
  void ReadAll() {
    loop_.Post([this] {
      const FlushQueue::Scope scope(flushes_);
      for (Recorder& call : calls_) {
        if (std::exchange(call.consume, true)) continue;
        call.stream->Consume(call.received);
      }
    });
    RunUntil([&] {
      return std::ranges::all_of(calls_, [](const Recorder& call) { return call.closed; });
    });
  }
  size_t Unread() const { return static_cast<size_t>(client_->session->unread()); }

  static constexpr size_t kPiece = size_t{64} << 10;
  std::list<Recorder> calls_;
};

TEST_F(UnreadTest, UnreadStreamsDoNotStopOthers) {
  AnswerWith(kReply);
  for (int i = 0; i < 8; ++i)
    OpenUnread();
  RunUntil([&] { return Unread() >= static_cast<size_t>(kConnectionWindow); });
  for (int i = 0; i < 3; ++i) {
    Recorder& ninth = OpenRead();
    RunUntil([&] { return ninth.closed; });
    EXPECT_EQ(ninth.received, kReply);
  }
  // The unread replies are complete once they are read.
  ReadAll();
  for (const Recorder& call : calls_)
    EXPECT_EQ(call.received, kReply);
  EXPECT_EQ(Unread(), 0U);
}

// Bytes that were consumed while the window was wide, and were not given back then, are given back
// when streams that are not read take the rest of the window.
TEST_F(UnreadTest, ConsumedBytesAreGivenBackWhenTheWindowShuts) {
  constexpr auto kWindow = static_cast<size_t>(kConnectionWindow);
  AnswerWith(kReply);
  for (int i = 0; i < 4; ++i)
    OpenUnread();
  RunUntil([&] { return Unread() >= kWindow / 2; });
  // Less than half of the connection's window, so nothing is given back yet; more than a stream's
  // window is left after it.
  AnswerWith(11 * kPiece);
  Recorder& read = OpenRead();
  RunUntil([&] { return read.closed; });
  AnswerWith(kReply);
  for (int i = 0; i < 2; ++i)
    OpenUnread();
  RunUntil([&] { return Unread() > kWindow / 2 + 4 * kPiece; });
  Recorder& last = OpenRead();
  RunUntil([&] { return last.closed; });
  EXPECT_EQ(last.received, kReply);
}

// Whatever was read and left unread before, a reply that is read arrives.
TEST_F(UnreadTest, RepliesThatAreReadArriveAfterAnyHistory) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 16; ++i) {
      AnswerWith(kPiece * std::uniform_int_distribution<size_t>(1, 20)(random));
      Recorder& call = random() % 2 == 0 ? OpenUnread() : OpenRead();
      RunUntil([&] { return call.consume ? call.closed : call.received > 0; });
      ASSERT_FALSE(HasFailure()) << "round " << round << ", call " << i;
    }
    ReadAll();
    ASSERT_FALSE(HasFailure()) << "round " << round;
    EXPECT_EQ(Unread(), 0U);
    calls_.clear();
    server_->recorders.clear();
  }
}

TEST_F(UnreadTest, AThousandOfThemAreBounded) {
  AnswerWith(static_cast<size_t>(kStreamWindow));
  constexpr size_t kStreams = kOurMaxConcurrentStreams - 1;
  for (size_t i = 0; i < kStreams; ++i)
    OpenUnread();
  RunUntil([&] {
    return std::ranges::all_of(calls_, [](const Recorder& call) { return call.received > 0; });
  });
  Recorder& last = OpenRead();
  RunUntil([&] { return last.closed; });
  EXPECT_LE(Unread(), static_cast<size_t>(kMostUnread));
  EXPECT_GT(Unread(), kStreams * 1024);
}

// A stream's consumed bytes are given back before its window becomes a small one.
TEST_F(UnreadTest, StreamsThatAreReadSlowlyGoOnWhenOthersAreNot) {
  AnswerWith(kReply);
  Recorder& slow = OpenUnread();
  RunUntil([&] { return slow.received == static_cast<size_t>(kStreamWindow); });
  slow.stream->Consume(static_cast<size_t>(kStreamWindow) / 2 - 1);
  for (int i = 0; i < 8; ++i)
    OpenUnread();
  RunUntil([&] { return Unread() >= static_cast<size_t>(kConnectionWindow) / 8 * 7; });
  Recorder& read = OpenRead();
  RunUntil([&] { return read.closed; });
  slow.consume = true;
  slow.stream->Consume(slow.received - (static_cast<size_t>(kStreamWindow) / 2 - 1));
  RunUntil([&] { return slow.closed; });
  EXPECT_EQ(slow.received, kReply);
}

TEST_F(UnreadTest, SessionsWithMuchUnreadWaitWhileTheProcessHasNoRoom) {
  AnswerWith(kReply);
  Recorder& unread = OpenUnread();
  RunUntil([&] { return unread.received == static_cast<size_t>(kStreamWindow); });
  // The block is never filled, so it costs nothing.
  Block* const others = Block::New(kMuchHeld);
  Recorder& late = OpenRead();
  RunUntil([&] { return server_->recorders.size() == 2 && server_->session->output_waits(); });
  EXPECT_EQ(late.received, 0U);
  others->Unref();
  RunUntil([&] { return late.closed; });
  EXPECT_EQ(late.received, kReply);
}

TEST_F(UnreadTest, SessionsThatConsumeGoOnWithoutRoom) {
  AnswerWith(kReply);
  Block* const others = Block::New(kMuchHeld);
  Recorder& read = OpenRead();
  RunUntil([&] { return read.closed; });
  EXPECT_EQ(read.received, kReply);
  Recorder& unread = OpenUnread();
  RunUntil([&] { return unread.received > kKeptShare; });
  loop_.Post([&] {
    const FlushQueue::Scope scope(flushes_);
    unread.consume = true;
    unread.stream->Consume(unread.received);
  });
  RunUntil([&] { return unread.closed; });
  others->Unref();
}

// Counts the turns that the loop takes until all frames are answered.
class FloodTest : public FramesTest {
 protected:
  int TurnsUntil(const std::function<bool()>& condition) {
    int turns = 0;
    std::function<void()> count = [&] {
      ++turns;
      if (!done_) loop_.Post(count);
    };
    loop_.Post(count);
    RunUntil([&] { return done_ = condition(); });
    return turns;
  }
  static std::string Repeated(FrameType type, std::string_view payload, int times) {
    std::string frame(kFrameHeaderSize, '\0');
    WriteFrameHeader({.length = static_cast<uint32_t>(payload.size()), .type = type},
                     reinterpret_cast<uint8_t*>(frame.data()));
    frame += payload;
    std::string all;
    for (int i = 0; i < times; ++i)
      all += frame;
    return all;
  }

  bool done_ = false;
};

TEST_F(FloodTest, AThousandFramesAreTakenInSeveralTurns) {
  constexpr int kFrames = 10 * kFramesPerTurn;
  Send(FrameType::kSettings, 0, 0, "");
  const std::string pings = Repeated(FrameType::kPing, "12345678", kFrames);
  ASSERT_EQ(::send(peer_.get(), pings.data(), pings.size(), 0), static_cast<ssize_t>(pings.size()));
  const int turns = TurnsUntil([&] { return Count(FrameType::kPing) == kFrames; });
  EXPECT_GE(turns, 9);
}

TEST_F(FloodTest, AConnectionThatIsLostBetweenTurnsEnds) {
  Send(FrameType::kSettings, 0, 0, "");
  const std::string pings = Repeated(FrameType::kPing, "12345678", 4 * kFramesPerTurn);
  ASSERT_EQ(::send(peer_.get(), pings.data(), pings.size(), 0), static_cast<ssize_t>(pings.size()));
  RunUntil([&] { return Count(FrameType::kPing) > 0; });
  peer_.Reset();
  RunUntil([&] { return !end_->disconnect.ok(); });
}

TEST_F(FloodTest, AFrameOfAThousandSettingsEndsTheConnection) {
  std::string settings;
  for (size_t i = 0; i <= kMostSettings; ++i)
    settings += std::string("\0\4\0\0\xff\xff", 6);
  Send(FrameType::kSettings, 0, 0, settings);
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_THAT(Describe(end_->disconnect), testing::HasSubstr("65 settings"));
}

TEST_F(FloodTest, TheInitialWindowCountsForOpenStreams) {
  Send(FrameType::kSettings, 0, 0, std::string_view("\0\4\0\0\0\x0a", 6));
  RunUntil([&] { return Count(FrameType::kSettings) == 2; });
  Recorder call(*end_->session, Request("/a/b"));
  call.stream->SendData(Slice::Copy(std::string(100, 'x')));
  RunUntil([&] { return call.sent == 10; });
  // Windows of less than was sent, and of as much; larger ones follow.
  for (const char window : {'\x05', '\x0a'}) {
    Send(FrameType::kSettings, 0, 0, std::string("\0\4\0\0\0", 5) + window);
  }
  RunUntil([&] { return Count(FrameType::kSettings) == 4; });
  EXPECT_EQ(call.sent, 10U);
  Send(FrameType::kSettings, 0, 0, std::string_view("\0\4\0\0\0\x0f", 6));
  RunUntil([&] { return call.sent == 15; });
  Send(FrameType::kWindowUpdate, 0, 1, std::string_view("\0\0\0\x05", 4));
  RunUntil([&] { return call.sent == 20; });
}

// Each update of the connection's window is for one of them.
TEST_F(FloodTest, StreamsTakeTurnsInASmallConnectionWindow) {
  Send(FrameType::kSettings, 0, 0, "");
  std::list<Recorder> calls;
  for (int i = 0; i < 2; ++i) {
    Recorder& call = calls.emplace_back(*end_->session, Request("/a/b"));
    call.stream->SendData(Slice::Copy(std::string(60'000, 'x')));
  }
  const auto sent = [&] { return calls.front().sent + calls.back().sent; };
  RunUntil([&] { return sent() == static_cast<size_t>(kDefaultWindow); });
  const size_t first = calls.front().sent;
  const size_t second = calls.back().sent;
  for (size_t updates = 1; updates <= 20; ++updates) {
    Send(FrameType::kWindowUpdate, 0, 0, std::string_view("\0\0\0\x0a", 4));
    RunUntil([&] { return sent() == static_cast<size_t>(kDefaultWindow) + 10 * updates; });
  }
  EXPECT_EQ(calls.front().sent - first, 100U);
  EXPECT_EQ(calls.back().sent - second, 100U);
}

TEST_F(FloodTest, TheEndOfAStreamNeedsNoWindow) {
  Send(FrameType::kSettings, 0, 0, "");
  std::list<Recorder> calls;
  const auto open = [&]() -> Recorder& {
    Recorder& call = calls.emplace_back(*end_->session, Request("/a/b"));
    return call;
  };
  Recorder& large = open();
  Recorder& rest = open();
  // The window shuts, with data of both waiting.
  for (Recorder* const call : {&large, &rest})
    call->stream->SendData(Slice::Copy(std::string(60'000, 'x')));
  RunUntil([&] { return large.sent + rest.sent == static_cast<size_t>(kDefaultWindow); });
  Recorder& small = open();
  small.stream->SendEnd();
  const auto ended = [&] {
    return std::ranges::any_of(Frames(FrameType::kData), [](const FrameHeader& frame) {
      return frame.stream == 5 && (frame.flags & kFlagEndStream) != 0;
    });
  };
  RunUntil(ended);
  EXPECT_EQ(large.sent + rest.sent, static_cast<size_t>(kDefaultWindow));
}

// Breaking the rules of a stream gives up its call, too, without a frame that says so.
TEST_F(ServerFramesTest, BrokenStreamsCountAsCallsThatAreGivenUp) {
  Greet();
  HpackEncoder encoder;
  std::string frames;
  const auto add = [&](FrameType type, uint8_t flags, int32_t stream, std::string_view payload) {
    frames += Frame(type, flags, stream, payload);
  };
  const auto give_up = [&](int32_t stream) {
    add(FrameType::kHeaders, kFlagEndHeaders, stream, encoder.Encode(Request("/a/b")));
    switch (stream / 2 % 4) {
      case 0:
        return add(FrameType::kRstStream, 0, stream, std::string_view("\0\0\0\x08", 4));
      case 1:
        return add(FrameType::kWindowUpdate, 0, stream, std::string_view("\0\0\0\0", 4));
      case 2:
        return add(FrameType::kHeaders, kFlagEndHeaders, stream, encoder.Encode(Request("/a/b")));
      default:
        add(FrameType::kData, kFlagEndStream, stream, "");
        return add(FrameType::kData, 0, stream, "x");
    }
  };
  const auto send = [&] {
    ASSERT_EQ(::send(peer_.get(), frames.data(), frames.size(), 0),
              static_cast<ssize_t>(frames.size()));
    frames.clear();
  };
  int32_t stream = 1;
  for (; stream < 2 * static_cast<int32_t>(kMostResets); stream += 2)
    give_up(stream);
  // All at once, since the limit is of a second.
  send();
  RunUntil(
      [&] { return end_->recorders.size() == kMostResets && end_->session->open_streams() == 0; });
  EXPECT_TRUE(end_->disconnect.ok());
  give_up(stream);
  send();
  RunUntil([&] { return !end_->disconnect.ok(); });
  EXPECT_EQ(end_->disconnect.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(end_->session->open_streams(), 0);
}

TEST_F(ServerFramesTest, MemoryOfALongHeaderBlockIsGivenBack) {
  Greet();
  RunUntil([&] { return Count(FrameType::kSettings) == 2; });
  const size_t before = Memory::held();
  HeaderBlock headers = Request("/a/b");
  headers.Add("long", std::string(50'000, 'x'));
  headers.Add("more", std::string(50'000, 'x'));
  HpackEncoder encoder;
  const std::string_view block = encoder.Encode(headers);
  headers = {};
  Send(FrameType::kHeaders, 0, 1, block.substr(0, 60'000));
  Send(FrameType::kContinuation, kFlagEndHeaders, 1, block.substr(60'000));
  RunUntil([&] { return end_->recorders.size() == 1; });
  end_->recorders.clear();
  EXPECT_LT(Memory::held(), before + kScratchBlock);
}

// A client that takes none of its answers is not read either.
TEST_F(ServerFramesTest, PingsWithoutAReaderFillTheSocketAndNotTheMemory) {
  Greet();
  std::string pings;
  for (int i = 0; i < 1000; ++i) {
    std::string frame(kFrameHeaderSize, '\0');
    WriteFrameHeader({.length = 8, .type = FrameType::kPing},
                     reinterpret_cast<uint8_t*>(frame.data()));
    pings += frame + "12345678";
  }
  const size_t before = Memory::held();
  int stuck = 0;
  size_t sent = 0;
  RunUntil([&] {
    const ssize_t count = ::send(peer_.get(), pings.data() + sent % 17, 17 * 900, MSG_DONTWAIT);
    if (count > 0) sent += static_cast<size_t>(count);
    stuck = count < 0 ? stuck + 1 : 0;
    return stuck > 20;
  });
  EXPECT_TRUE(end_->disconnect.ok());
  EXPECT_LT(Memory::held() - before, 2 * kOutputHighWater);
}

}  // namespace
}  // namespace resmgr::h2
