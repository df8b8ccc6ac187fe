// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/bounded_message.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/api/nri.pb.h"
#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

size_t CountOf(const google::protobuf::Message& message, size_t most = kMostFields) {
  return CountFields(message.SerializeAsString(), *message.GetDescriptor(), most);
}

// `count` empty messages in field 2, encoded.
std::string Empty(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i)
    bytes.append("\x12\x00", 2);
  return bytes;
}

TEST(BoundedMessageTest, FieldsOfAllDepthsCount) {
  EXPECT_EQ(CountOf(api::CreateContainerResponse()), 0U);
  EXPECT_EQ(CountOf(Make<api::CreateContainerResponse>("adjust { args: 'a' args: 'b' }")), 3U);
  // An entry of a map has a key and a value.
  EXPECT_EQ(CountOf(Make<api::CreateContainerResponse>(
                "adjust { annotations { key: 'k' value: 'v' } } update { container_id: 'c' }")),
            6U);
  EXPECT_EQ(CountOf(Make<api::PodSandbox>("linux { cgroup_parent: 'p' } pid: 17")), 3U);
}

TEST(BoundedMessageTest, EachByteOfAPackedListCounts) {
  const auto user =
      Make<api::User>("uid: 1 additional_gids: 1 additional_gids: 2 additional_gids: 300");
  EXPECT_EQ(CountOf(user), 2U + 4U);
}

TEST(BoundedMessageTest, WhatIsNotKnownCounts) {
  const api::Empty empty;
  EXPECT_EQ(CountFields(Empty(5), *empty.GetDescriptor(), kMostFields), 5U);
  // Groups, whose contents protobuf keeps.
  std::string group = "\x0b";
  for (int i = 0; i < 100; ++i)
    group.append("\x10\x01", 2);
  group += "\x0c";
  EXPECT_GE(CountFields(group, *empty.GetDescriptor(), kMostFields), 100U);
}

TEST(BoundedMessageTest, CountingEndsAtTheBound) {
  const auto& type = *api::CreateContainerResponse::descriptor();
  EXPECT_EQ(CountFields(Empty(10), type, 10), 10U);
  EXPECT_EQ(CountFields(Empty(11), type, 10), 11U);
  EXPECT_EQ(CountFields(Empty(1000), type, 10), 11U);
  EXPECT_EQ(CountFields("\xff", type, 10), 11U) << "no protobuf";
}

TEST(BoundedMessageTest, OneWithTooManyFieldsIsNotDecoded) {
  api::CreateContainerResponse response;
  ASSERT_TRUE(DecodeMessage(Empty(kMostFields), response).ok());
  EXPECT_EQ(response.update_size(), static_cast<int>(kMostFields));
  response.Clear();
  EXPECT_EQ(DecodeMessage(Empty(kMostFields + 1), response).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(response.update_size(), 0);
  EXPECT_TRUE(DecodeMessage(Empty(kMostFields + 1), response, kMostPieceFields).ok());
  // A long text is one field.
  response.Clear();
  response.mutable_adjust()->add_args(std::string(size_t{3} << 20, 'x'));
  EXPECT_TRUE(DecodeMessage(response.SerializeAsString(), response).ok());
}

TEST(BoundedMessageTest, WhatIsNoProtobufIsRefused) {
  api::CreateContainerResponse response;
  EXPECT_EQ(DecodeMessage("\xff\xff", response).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resmgr::nri
