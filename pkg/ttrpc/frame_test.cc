// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/frame.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/ttrpc/limits.h"

namespace resmgr::ttrpc {
namespace {

std::string Bytes(const FrameHeader& header, std::string_view body = {}) {
  const auto bytes = Encode(header);
  return std::string(bytes.data(), bytes.size()).append(body);
}

FrameHeader RequestOf(uint32_t stream, size_t length) {
  return {.length = static_cast<uint32_t>(length), .stream = stream, .type = 1, .flags = 0};
}

// "stream:body", or "stream skipped", for each frame in the pieces.
std::vector<std::string> ReadAll(FrameReader& reader, const std::vector<std::string_view>& pieces) {
  std::vector<std::string> frames;
  for (std::string_view piece : pieces) {
    while (const std::optional<Frame> frame = reader.Next(piece)) {
      frames.push_back(std::to_string(frame->header.stream) +
                       (frame->skipped ? " skipped" : ":" + frame->body));
    }
    EXPECT_TRUE(piece.empty());
  }
  return frames;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FrameTest, AHeaderIsTenBytesInNetworkByteOrder) {
  const FrameHeader header{.length = 0x01020304, .stream = 0x0a0b0c0d, .type = 2, .flags = 5};
  EXPECT_EQ(Bytes(header), std::string("\x01\x02\x03\x04\x0a\x0b\x0c\x0d\x02\x05"));
  EXPECT_EQ(DecodeHeader(Bytes(header)), header);
}

TEST(FrameReaderTest, ReadsFramesThatAreSplitAtAnyByte) {
  const std::string bytes =
      Bytes(RequestOf(1, 5), "first") + Bytes(RequestOf(3, 0)) + Bytes(RequestOf(5, 4), "last");
  for (size_t split = 0; split <= bytes.size(); ++split) {
    MemoryBudget budget;
    FrameReader reader(budget);
    const std::string_view whole = bytes;
    EXPECT_THAT(ReadAll(reader, {whole.substr(0, split), whole.substr(split)}),
                ElementsAre("1:first", "3:", "5:last"));
    EXPECT_EQ(budget.held(), 0U);
  }
}

TEST(FrameReaderTest, ReadsFramesByteByByte) {
  const std::string bytes = Bytes(RequestOf(1, 5), "first") + Bytes(RequestOf(3, 6), "second");
  MemoryBudget budget;
  FrameReader reader(budget);
  std::vector<std::string_view> pieces;
  for (size_t i = 0; i < bytes.size(); ++i)
    pieces.push_back(std::string_view(bytes).substr(i, 1));
  EXPECT_THAT(ReadAll(reader, pieces), ElementsAre("1:first", "3:second"));
}

// A later version of the protocol may have more types (containerd/ttrpc, PROTOCOL.md).
TEST(FrameReaderTest, SkipsTypesThatItDoesNotKnow) {
  FrameHeader unknown = RequestOf(1, 4);
  MemoryBudget budget;
  FrameReader reader(budget);
  for (const int type : {0, 3, 4, 255}) {
    unknown.type = static_cast<uint8_t>(type);
    const std::string bytes = Bytes(unknown, "data") + Bytes(RequestOf(7, 4), "next");
    EXPECT_THAT(ReadAll(reader, {bytes}), ElementsAre("7:next"));
  }
}

TEST(FrameReaderTest, SkipsABodyThatIsTooLong) {
  const std::string most(kLongestMessage, 'x');
  const std::string bytes = Bytes(RequestOf(1, most.size() + 1), most + "x") +
                            Bytes(RequestOf(3, most.size()), most) + Bytes(RequestOf(5, 1), "y");
  MemoryBudget budget;
  FrameReader reader(budget);
  EXPECT_THAT(ReadAll(reader, {bytes}), ElementsAre("1 skipped", "3:" + most, "5:y"));
}

TEST(FrameReaderTest, SkipsABodyThatTheBudgetHasNoRoomFor) {
  MemoryBudget budget(10);
  FrameReader reader(budget);
  std::string_view first = "1234567890";
  std::string bytes = Bytes(RequestOf(1, 10), first);
  std::string_view rest = bytes;
  const std::optional<Frame> held = reader.Next(rest);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(budget.held(), 10U);
  EXPECT_THAT(ReadAll(reader, {Bytes(RequestOf(3, 1), "x")}), ElementsAre("3 skipped"));
}

TEST(FrameReaderTest, AnEndInTheMiddleGivesItsMemoryBack) {
  MemoryBudget budget;
  {
    FrameReader reader(budget);
    EXPECT_THAT(ReadAll(reader, {Bytes(RequestOf(1, 100), "half")}), IsEmpty());
    EXPECT_EQ(budget.held(), 100U);
  }
  EXPECT_EQ(budget.held(), 0U);
}

}  // namespace
}  // namespace resmgr::ttrpc
