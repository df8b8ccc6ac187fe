// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/session/plugin_port.h"

namespace resmgr::nri {
namespace {

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

SharedSyncMessages Encoded(const api::SynchronizeRequest& node, size_t most_bytes) {
  SyncWriter writer(most_bytes);
  for (const api::PodSandbox& pod : node.pods())
    writer.Add(pod);
  for (const api::Container& container : node.containers())
    writer.Add(container);
  return writer.Finish();
}

TEST(SyncMessagesTest, AllPiecesTogetherAreTheNode) {
  std::mt19937_64 random(7);
  for (const auto& [pods, containers] : {std::pair(0, 0), {1, 0}, {0, 1}, {40, 0}, {30, 200}}) {
    const api::SynchronizeRequest node = Node(random, pods, containers);
    const SharedSyncMessages encoded = Encoded(node, 1000);
    EXPECT_THAT(encoded->left_out, IsEmpty());
    api::SynchronizeRequest all;
    size_t left = encoded->messages.size();
    for (const ttrpc::SharedBytes& bytes : encoded->messages) {
      api::SynchronizeRequest part;
      ASSERT_TRUE(part.ParseFromString(*bytes));
      EXPECT_LE(bytes->size(), 1000U);
      EXPECT_EQ(part.more(), --left > 0);
      part.clear_more();
      all.MergeFrom(part);
    }
    EXPECT_TRUE(all.SerializeAsString() == node.SerializeAsString());
    // Filled greedily: no two neighbours would fit into one.
    EXPECT_LE(encoded->messages.size(), 2 * node.ByteSizeLong() / 1000 + 1);
  }
}

TEST(SyncMessagesTest, WhatFitsInNoPieceIsLeftOut) {
  api::SynchronizeRequest node;
  node.add_pods()->set_id(std::string(2000, 'x'));
  node.add_containers()->set_id("small");
  const SharedSyncMessages encoded = Encoded(node, 1000);
  ASSERT_THAT(encoded->messages, SizeIs(1));
  api::SynchronizeRequest part;
  ASSERT_TRUE(part.ParseFromString(*encoded->messages[0]));
  EXPECT_THAT(part.pods(), IsEmpty());
  EXPECT_THAT(part.containers(), SizeIs(1));
  ASSERT_THAT(encoded->left_out, SizeIs(1));
  EXPECT_EQ(encoded->left_out[0].id, node.pods(0).id());
  EXPECT_EQ(encoded->left_out[0].bytes, 2003U);
}

}  // namespace
}  // namespace resmgr::nri
