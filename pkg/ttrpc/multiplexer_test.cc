// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/multiplexer.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/ttrpc/byte_order.h"
#include "pkg/ttrpc/limits.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::ttrpc {
namespace {

using test::ReadNow;
using test::RunUntil;
using test::SocketPair;
using test::WriteNow;
using testing::HasSubstr;
using testing::IsEmpty;

std::string TrunkFrame(uint32_t id, std::string_view payload) {
  std::string bytes(8, '\0');
  PutUint32(id, bytes.data());
  PutUint32(static_cast<uint32_t>(payload.size()), bytes.data() + 4);
  return bytes.append(payload);
}

struct Collector final : Multiplexer::Receiver {
  void OnBytes(std::string_view bytes) override { all += bytes; }
  std::string all;
};

class MultiplexerTest : public testing::Test {
 protected:
  bool Until(const std::function<bool()>& condition) { return RunUntil(loop_, condition); }

  EventLoop loop_;
  SocketPair sockets_;
  std::optional<Status> lost_;
  std::optional<Multiplexer> multiplexer_{std::in_place, loop_, std::move(sockets_.ours),
                                          [this](const Status& why) { lost_ = why; }};
};

TEST_F(MultiplexerTest, AMessageIsAFrameOfItsHeaderAndOneOfItsBody) {
  multiplexer_->Send(2, "header", "body");
  multiplexer_->Send(1, "empty", "");
  EXPECT_EQ(ReadNow(sockets_.theirs),
            TrunkFrame(2, "header") + TrunkFrame(2, "body") + TrunkFrame(1, "empty"));
}

TEST_F(MultiplexerTest, BytesGoToTheirConnectionHoweverTheyAreSplit) {
  const std::string bytes = TrunkFrame(1, "a") + TrunkFrame(2, "bc") + TrunkFrame(1, "") +
                            TrunkFrame(7, "unopened") + TrunkFrame(1, "def");
  Collector first;
  Collector second;
  multiplexer_->Open(1, first);
  multiplexer_->Open(2, second);
  size_t expected = 0;
  for (size_t split = 0; split <= bytes.size(); ++split) {
    expected += 4;
    ASSERT_TRUE(WriteNow(sockets_.theirs, bytes.substr(0, split)));
    bool turned = false;
    const auto turn = loop_.After(std::chrono::milliseconds(1), [&] { turned = true; });
    ASSERT_TRUE(Until([&] { return turned; }));
    ASSERT_TRUE(WriteNow(sockets_.theirs, bytes.substr(split)));
    ASSERT_TRUE(Until([&] { return first.all.size() == expected; })) << split;
  }
  EXPECT_THAT(first.all, testing::StartsWith("adefadef"));
  EXPECT_THAT(second.all, testing::StartsWith("bcbc"));
  EXPECT_FALSE(lost_.has_value());
}

TEST_F(MultiplexerTest, TellsThatThePeerHasClosed) {
  sockets_.theirs.Reset();
  ASSERT_TRUE(Until([&] { return lost_.has_value(); }));
  EXPECT_EQ(lost_->code(), StatusCode::kUnavailable);
  multiplexer_->Send(1, "header", "body");
  EXPECT_EQ(multiplexer_->unsent(), 0U);
}

TEST_F(MultiplexerTest, AFrameLongerThanAnyPeerSendsEndsIt) {
  std::string bytes = TrunkFrame(1, "");
  PutUint32(static_cast<uint32_t>(kLongestTrunkFrame + 1), bytes.data() + 4);
  ASSERT_TRUE(WriteNow(sockets_.theirs, bytes));
  ASSERT_TRUE(Until([&] { return lost_.has_value(); }));
  EXPECT_EQ(lost_->code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(*lost_)), HasSubstr("announces a frame"));
}

TEST_F(MultiplexerTest, APeerThatDoesNotReadIsGivenUp) {
  const std::string body(size_t{1} << 20, 'x');
  size_t sent = 0;
  while (!lost_ && sent < 20) {
    multiplexer_->Send(1, "header", body);
    EXPECT_LE(multiplexer_->unsent(), kMostUnsent + body.size() + 100);
    if (++sent % 4 == 0) {
      bool turned = false;
      const auto turn = loop_.After(std::chrono::milliseconds(0), [&] { turned = true; });
      Until([&] { return turned; });
    }
  }
  ASSERT_TRUE(Until([&] { return lost_.has_value(); }));
  EXPECT_EQ(lost_->code(), StatusCode::kResourceExhausted);
}

TEST_F(MultiplexerTest, AMessageThatIsReadSlowlyArrivesWhole) {
  const std::string body(size_t{3} << 20, 'x');
  multiplexer_->Send(1, "header", body);
  multiplexer_->Send(1, "next", "");
  const std::string expected =
      TrunkFrame(1, "header") + TrunkFrame(1, body) + TrunkFrame(1, "next");
  std::string all;
  EXPECT_TRUE(Until([&] {
    all += ReadNow(sockets_.theirs);
    return all.size() >= expected.size();
  }));
  EXPECT_TRUE(all == expected);
  EXPECT_EQ(multiplexer_->unsent(), 0U);
}

TEST_F(MultiplexerTest, AReceiverMayDestroyIt) {
  struct Destroyer final : Multiplexer::Receiver {
    void OnBytes(std::string_view) override { target->reset(); }
    std::optional<Multiplexer>* target = nullptr;
  } destroyer;
  destroyer.target = &multiplexer_;
  multiplexer_->Open(1, destroyer);
  ASSERT_TRUE(WriteNow(sockets_.theirs, TrunkFrame(1, "a") + TrunkFrame(1, "b")));
  EXPECT_TRUE(Until([&] { return !multiplexer_.has_value(); }));
}

}  // namespace
}  // namespace resmgr::ttrpc
