// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/bytes.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "pkg/h2/limits.h"

namespace resmgr::h2 {
namespace {

TEST(SliceTest, KeepsItsBlockAlive) {
  Block* block = Block::New(8);
  std::memcpy(block->data(), "abcdefgh", 8);
  Slice slice(block, block->data() + 2, 3);
  EXPECT_TRUE(block->shared());
  block->Unref();
  Slice copy = slice;
  slice = Slice();
  EXPECT_EQ(copy.view(), "cde");
}

TEST(SliceQueueTest, MovesPartsOfSlices) {
  SliceQueue from;
  from.Append(Slice::Copy("hello "));
  from.Append(Slice::Copy("world"));
  SliceQueue to;
  from.MoveTo(8, to);
  EXPECT_EQ(to.ToString(), "hello wo");
  EXPECT_EQ(from.ToString(), "rld");
  EXPECT_EQ(from.size(), 3U);
  from.Drop(3);
  EXPECT_TRUE(from.empty());
  EXPECT_TRUE(from.slices().empty());
}

TEST(SliceQueueTest, IgnoresEmptySlices) {
  SliceQueue queue;
  queue.Append(Slice());
  queue.Append(Slice::Copy(""));
  EXPECT_TRUE(queue.slices().empty());
}

TEST(SliceQueueTest, StaysCorrectOverManyAppendsAndDrops) {
  SliceQueue queue;
  std::string expected;
  for (int i = 100; i < 1100; ++i) {
    const std::string piece = std::to_string(i);
    queue.Append(Slice::Copy(piece));
    expected += piece;
    if (i % 3 == 0) {
      queue.Drop(2);
      expected.erase(0, 2);
    }
  }
  EXPECT_EQ(queue.ToString(), expected);
  EXPECT_EQ(queue.size(), expected.size());
}

TEST(ScratchTest, NeighboursJoin) {
  Scratch scratch;
  SliceQueue queue;
  queue.AppendCopy("one ", scratch);
  queue.AppendCopy("two", scratch);
  EXPECT_EQ(queue.ToString(), "one two");
  EXPECT_EQ(queue.slices().size(), 1U);
}

TEST(ScratchTest, ReusesItsBlockWhenUnreferenced) {
  Scratch scratch;
  const uint8_t* first = scratch.Reserve(3);
  scratch.Rewind();
  const uint8_t* second = scratch.Reserve(3);
  EXPECT_EQ(first, second);

  const Slice held = scratch.Copy("held");
  scratch.Rewind();
  EXPECT_NE(scratch.Reserve(3), first);
  EXPECT_EQ(held.view(), "held");
}

TEST(ScratchTest, StaysInOneBlockWhileNothingIsHeld) {
  Scratch scratch;
  scratch.Reserve(1);
  const Block* block = scratch.block();
  for (size_t used = 0; used < 3 * kScratchBlock; used += 1000)
    scratch.Reserve(1000);
  EXPECT_EQ(scratch.block(), block);
}

TEST(BlockTest, GivesAKeptBlockOutAsANewOne) {
  for (const size_t size : {kReadBlock, kScratchBlock, size_t{100}}) {
    Block* const first = Block::New(size);
    Block* const second = Block::New(size);
    EXPECT_NE(first, second);
    first->Ref();
    EXPECT_TRUE(first->shared());
    first->Unref();
    first->Unref();
    Block* const third = Block::New(size);
    EXPECT_NE(third, second);
    EXPECT_FALSE(third->shared());
    EXPECT_EQ(third->capacity(), size);
    second->Unref();
    third->Unref();
  }
}

TEST(ScratchTest, TakesWhatIsLargerThanItsBlocks) {
  Scratch scratch;
  SliceQueue queue;
  queue.AppendCopy("small", scratch);
  const std::string large(100'000, 'x');
  queue.AppendCopy(large, scratch);
  EXPECT_EQ(queue.ToString(), "small" + large);
}

TEST(ScratchTest, NeverOverwritesWhatIsHeld) {
  Scratch scratch;
  SliceQueue held;
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    const std::string piece = "piece " + std::to_string(i);
    held.AppendCopy(piece, scratch);
    expected += piece;
  }
  EXPECT_EQ(held.ToString(), expected);
}

}  // namespace
}  // namespace resmgr::h2
