// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/sync_chunks.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

api::SynchronizeRequest Node(std::mt19937_64& random, int pods, int containers) {
  std::uniform_int_distribution<size_t> size(0, 300);
  api::SynchronizeRequest all;
  for (int i = 0; i < pods; ++i)
    all.add_pods()->set_name(std::string(size(random), 'p'));
  for (int i = 0; i < containers; ++i)
    all.add_containers()->set_name(std::string(size(random), 'c'));
  return all;
}

TEST(SyncChunksTest, AllPiecesTogetherAreTheNode) {
  std::mt19937_64 random(7);
  for (const auto& [pods, containers] : {std::pair(0, 0), {1, 0}, {0, 1}, {40, 0}, {30, 200}}) {
    const api::SynchronizeRequest node = Node(random, pods, containers);
    SyncChunks chunks(node, 1000, [](const std::string&, size_t) { FAIL(); });
    api::SynchronizeRequest all;
    size_t pieces = 0;
    bool more = true;
    while (const auto chunk = chunks.Next()) {
      api::SynchronizeRequest part;
      ASSERT_TRUE(part.ParseFromString(chunk->bytes));
      EXPECT_LE(chunk->bytes.size(), 1000U);
      EXPECT_EQ(part.more(), chunk->more);
      EXPECT_TRUE(more) << "the last piece has been there";
      more = chunk->more;
      part.clear_more();
      all.MergeFrom(part);
      ++pieces;
    }
    EXPECT_FALSE(more);
    EXPECT_TRUE(all.SerializeAsString() == node.SerializeAsString());
    // Greedily: no two neighbours would fit into one.
    EXPECT_LE(pieces, 2 * node.ByteSizeLong() / 1000 + 1);
  }
}

TEST(SyncChunksTest, WhatFitsInNoPieceIsLeftOut) {
  api::SynchronizeRequest node;
  node.add_pods()->set_id(std::string(2000, 'x'));
  node.add_containers()->set_id("small");
  std::vector<size_t> left_out;
  SyncChunks chunks(node, 1000, [&](const std::string&, size_t size) { left_out.push_back(size); });
  const auto chunk = chunks.Next();
  api::SynchronizeRequest part;
  ASSERT_TRUE(part.ParseFromString(chunk->bytes));
  EXPECT_THAT(part.pods(), IsEmpty());
  EXPECT_THAT(part.containers(), SizeIs(1));
  EXPECT_THAT(left_out, ElementsAre(2003));
  EXPECT_FALSE(chunks.Next().has_value());
}

}  // namespace
}  // namespace resmgr::nri
