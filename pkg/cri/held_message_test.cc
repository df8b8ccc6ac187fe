// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/held_message.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/limits.h"
#include "pkg/h2/memory.h"
#include "test/support/grpc_framing.h"
#include "test/support/gzip.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Framed;
using test::Gzip;
using test::HasCode;

constexpr size_t kLimit = size_t{64} * 1024;

class HeldMessageTest : public testing::Test {
 protected:
  // Adds a body as from a socket, in pieces of this size.
  void Add(std::string_view body, size_t piece) {
    for (; !body.empty(); body.remove_prefix(std::min(piece, body.size())))
      held_.Add(h2::Slice::Copy(body.substr(0, piece)), scratch_);
  }
  StatusOr<std::string> Read() {
    const auto message = held_.Read(headers_);
    if (!message.ok()) return message.status();
    return std::string(*message);
  }
  std::string Body() const { return held_.body().ToString(); }

  h2::Scratch scratch_;
  h2::HeaderBlock headers_;
  HeldMessage held_{kLimit};
};

TEST_F(HeldMessageTest, IsReadHoweverItArrives) {
  const std::string payload(10'000, 'x');
  for (const size_t piece : {1U, 4U, 5U, 6U, 2000U, 2049U, 5000U, 10'005U}) {
    held_.Clear();
    Add(Framed(payload), piece);
    EXPECT_EQ(Read().value(), payload) << piece;
    EXPECT_EQ(Body(), Framed(payload)) << piece;
  }
  held_.Clear();
  Add(Framed(""), 5);
  EXPECT_EQ(Read().value(), "");
}

TEST_F(HeldMessageTest, GrowsAndKeepsTheBytesThatItHas) {
  const std::string payload(10'000, 'x');
  for (const size_t piece : {3U, 5000U, 10'005U}) {
    held_.Clear();
    Add(Framed(payload), piece);
    ASSERT_TRUE(Read().ok());
    held_.MakeLonger(300);
    EXPECT_EQ(Body(), EncodeGrpcPrefix(false, 10'300) + payload) << piece;
  }
}

TEST_F(HeldMessageTest, ACompressedOneStaysSoUntilItGrows) {
  headers_.Add("grpc-encoding", "identity");
  Add(Framed("text", true), 100);
  EXPECT_EQ(Read().value(), "text");
  EXPECT_EQ(Body(), Framed("text", true));
  held_.MakeLonger(2);
  EXPECT_EQ(Body(), EncodeGrpcPrefix(false, 6) + "text");
}

TEST_F(HeldMessageTest, WhatIsNotOneMessageIsNotRead) {
  const std::string one = Framed("message");
  for (const std::string& body : {std::string(), one.substr(0, 3), one.substr(0, 8), one + one,
                                  one + "\1", Framed("") + Framed("") + Framed("")}) {
    held_.Clear();
    Add(body, 100);
    EXPECT_THAT(Read(), HasCode(StatusCode::kInvalidArgument)) << body;
    EXPECT_EQ(Body(), body);
  }
  headers_.Add("grpc-encoding", "snappy");
  held_.Clear();
  Add(Framed("text", true), 100);
  EXPECT_THAT(Read(), HasCode(StatusCode::kUnimplemented));
}

TEST_F(HeldMessageTest, TheLimitIsOfTheMessageAndNotOfItsPrefix) {
  const std::string payload(kLimit, 'x');
  for (const size_t piece : {kLimit + 5, size_t{1000}}) {
    held_.Clear();
    Add(Framed(payload), piece);
    EXPECT_TRUE(held_.fits());
    EXPECT_EQ(Read().value(), payload);
  }
}

TEST_F(HeldMessageTest, AGrownOneThatWasCompressedIsAPlainOne) {
  headers_.Add("grpc-encoding", "gzip");
  const std::string payload(10'000, 'x');
  const std::string packed = Gzip(payload) + Gzip("!");
  for (const size_t piece : {7U, 10'000U}) {
    held_.Clear();
    Add(Framed(packed, true), piece);
    EXPECT_EQ(Read().value(), payload + "!");
    EXPECT_EQ(Body(), Framed(packed, true));
    held_.MakeLonger(2);
    EXPECT_EQ(Body(), EncodeGrpcPrefix(false, 10'003) + payload + "!");
  }
}

// It keeps more memory than its bytes: the blocks into which the pieces were read.
TEST_F(HeldMessageTest, CountsAllTheMemoryThatItKeeps) {
  EXPECT_EQ(held_.memory(), 0U);
  const size_t before = h2::Memory::held();
  const auto kept = [&] { return h2::Memory::held() - before; };
  for (int i = 0; i < 20; ++i) {
    h2::Block* const read = h2::Block::New(h2::kReadBlock);
    held_.Add(h2::Slice(read, read->data(), 2500), scratch_);
    read->Unref();
    EXPECT_LE(kept(), held_.memory()) << i;
  }
  EXPECT_LT(held_.memory(), size_t{128} * 1024);
  held_.Clear();
  EXPECT_EQ(kept(), 0U);
  EXPECT_EQ(held_.memory(), 0U);
}

// Otherwise each piece would cost a copy of all bytes before it: a prefix is easily wrong.
TEST_F(HeldMessageTest, GrowsInFewStepsWhateverItsPrefixSays) {
  for (const size_t told : {size_t{0}, size_t{100}, size_t{40'000}, 2 * kLimit}) {
    held_.Clear();
    Add(EncodeGrpcPrefix(false, told), 1);
    size_t steps = 0;
    size_t before = held_.memory();
    for (int i = 0; i < 50'000; ++i) {
      Add("x", 1);
      if (std::exchange(before, held_.memory()) != held_.memory()) ++steps;
    }
    EXPECT_LE(steps, 4U) << told;
    EXPECT_EQ(held_.size(), 50'005U);
  }
}

TEST_F(HeldMessageTest, WhatIsTooLargeIsHeldButNotRead) {
  const std::string body = Framed(std::string(kLimit + 1, 'x'));
  Add(std::string_view(body).substr(0, kLimit), kLimit);
  EXPECT_TRUE(held_.fits());
  Add(std::string_view(body).substr(kLimit), 1);
  EXPECT_FALSE(held_.fits());
  EXPECT_THAT(Read(), HasCode(StatusCode::kInvalidArgument));
  EXPECT_EQ(Body(), body);
}

}  // namespace
}  // namespace resmgr
