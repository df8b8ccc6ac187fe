// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/convert.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/nri.pb.h"
#include "pkg/nri/bounded_message.h"
#include "pkg/nri/protocol.h"
#include "pkg/nri/testing/messages.h"

namespace resmgr::nri {
namespace {

TEST(ConvertTest, SettingsOfProcessesAreFieldsOfACreation) {
  Adjustment adjustment;
  adjustment.Wide().scheduler = SchedulerSettings{.policy = SchedulerSettings::Policy::kDeadline,
                                                  .flags = {SchedulerSettings::Flag::kResetOnFork},
                                                  .runtime_ns = 10'000'000,
                                                  .deadline_ns = 20'000'000,
                                                  .period_ns = 30'000'000};
  adjustment.Wide().io_priority =
      IoPriority{.io_class = IoPriority::Class::kBestEffort, .priority = 6};
  adjustment.Wide().memory_policy =
      MemoryPolicySettings{.mode = MemoryPolicySettings::Mode::kInterleave,
                           .nodes = "0-1",
                           .flags = {MemoryPolicySettings::Flag::kStaticNodes}};
  api::ContainerAdjustment out;
  AddTo(adjustment, {0, 12, 0}, out);
  EXPECT_EQ(out.linux().scheduler().policy(), api::SCHEDULER_DEADLINE);
  EXPECT_EQ(out.linux().scheduler().runtime(), 10'000'000U) << "nanoseconds";
  EXPECT_EQ(out.linux().scheduler().deadline(), 20'000'000U);
  EXPECT_EQ(out.linux().scheduler().period(), 30'000'000U);
  ASSERT_EQ(out.linux().scheduler().flags_size(), 1);
  EXPECT_EQ(out.linux().scheduler().flags(0), api::SCHEDULER_FLAG_RESET_ON_FORK);
  EXPECT_EQ(out.linux().io_priority().class_(), api::IO_PRIORITY_BE);
  EXPECT_EQ(out.linux().io_priority().priority(), 6);
  EXPECT_EQ(out.linux().memory_policy().mode(), api::MEMORY_POLICY_INTERLEAVE);
  EXPECT_EQ(out.linux().memory_policy().nodes(), "0-1");
  ASSERT_EQ(out.linux().memory_policy().flags_size(), 1);
  EXPECT_FALSE(out.linux().has_resources());
  for (const Field field : {Field::kScheduler, Field::kIoPriority, Field::kMemoryPolicy}) {
    EXPECT_TRUE(NriHas(Operation::kCreateContainer, field)) << ToString(field);
    EXPECT_FALSE(NriHas(Operation::kUpdateContainerResources, field)) << ToString(field);
  }
}

TEST(ConvertTest, AClassOfRdtIsAGroupWhereTheHostKnowsThem) {
  Adjustment adjustment;
  adjustment.Wide().rdt_class = "cri-resmgr.gold";
  api::ContainerAdjustment old;
  AddTo(adjustment, {0, 10, 0}, old);
  EXPECT_EQ(old.linux().resources().rdt_class().value(), "cri-resmgr.gold");
  EXPECT_FALSE(old.linux().has_rdt());
  api::ContainerAdjustment out;
  AddTo(adjustment, {0, 11, 0}, out);
  EXPECT_EQ(out.linux().rdt().clos_id().value(), "cri-resmgr.gold");
  EXPECT_FALSE(out.linux().rdt().has_schemata()) << "the group has its masks";
  EXPECT_FALSE(out.linux().has_resources());
}

TEST(HostVersionTest, ReadsWhatRuntimesAndPackagesWrite) {
  EXPECT_EQ(ParseVersion("v0.12.2"), (ApiVersion{0, 12, 2}));
  EXPECT_EQ(ParseVersion("1.7.24+unknown"), (ApiVersion{1, 7, 24}));
  EXPECT_EQ(ParseVersion("2.1.4~ds1"), (ApiVersion{2, 1, 4}));
  EXPECT_EQ(ParseVersion("v2.3.0-rc.1"), (ApiVersion{2, 3, 0}));
  EXPECT_EQ(ParseVersion("1.34"), (ApiVersion{1, 34, 0}));
  EXPECT_EQ(ParseVersion("2."), (ApiVersion{2, 0, 0}));
  for (const char* const bad : {"", "v", "unknown", "-1.2", ".1", "99999999999999999999"})
    EXPECT_EQ(ParseVersion(bad), std::nullopt) << bad;
}

TEST(HostVersionTest, WhatTheHostSaysCounts) {
  EXPECT_EQ(VersionOfHost("v0.12.0", "containerd", "1.7.24"), (ApiVersion{0, 12, 0}));
}

TEST(HostVersionTest, ReleasesHaveTheVersionThatTheyAreBuiltWith) {
  const auto containerd = [](std::string_view version) {
    return VersionOfHost("", "containerd", version);
  };
  EXPECT_EQ(containerd("1.7.24~ds1"), (ApiVersion{0, 6, 1}));
  EXPECT_EQ(containerd("1.7.26"), (ApiVersion{0, 8, 0}));
  EXPECT_EQ(containerd("v2.1.4"), (ApiVersion{0, 8, 0}));
  EXPECT_EQ(containerd("2.2.0"), (ApiVersion{0, 10, 0}));
  EXPECT_EQ(containerd("2.2.7"), (ApiVersion{0, 11, 0}));
  EXPECT_EQ(containerd("2.4.0-beta.0"), (ApiVersion{0, 12, 0}));
  const auto crio = [](std::string_view version) { return VersionOfHost("", "cri-o", version); };
  EXPECT_EQ(crio("1.31.2"), (ApiVersion{0, 6, 1}));
  EXPECT_EQ(crio("1.32.0"), (ApiVersion{0, 9, 0}));
  EXPECT_EQ(crio("1.36.1"), (ApiVersion{0, 11, 0}));
  EXPECT_EQ(VersionOfHost("", "isulad", "2.1.5"), (ApiVersion{0, 6, 1}));
  EXPECT_EQ(VersionOfHost("", "containerd", "unknown"), (ApiVersion{0, 6, 1}));
}

TEST(HostVersionTest, RuntimesThatEndByOurUpdatesAreNotServed) {
  for (const char* const version : {"1.26.0", "1.26.1", "v1.26.1-dev"})
    EXPECT_EQ(CheckRuntime("cri-o", version).code(), StatusCode::kFailedPrecondition) << version;
  for (const char* const version : {"1.26.2", "1.25.9", "1.27.0", "1.35.0", "unknown"})
    EXPECT_TRUE(CheckRuntime("cri-o", version).ok()) << version;
  EXPECT_TRUE(CheckRuntime("containerd", "1.26.0").ok());
}

// A host refuses a plugin that asks for an unknown event.
TEST(HostVersionTest, AHostIsAskedForTheEventsThatItKnows) {
  EXPECT_EQ(EventsOfHost({0, 6, 1}), 0x7ffU);
  EXPECT_EQ(EventsOfHost({0, 9, 0}), 0x7ffU);
  EXPECT_EQ(EventsOfHost(VersionOfHost("", "cri-o", "1.33.0")), 0x1fffU);
  EXPECT_EQ(EventsOfHost({0, 10, 0}), 0x1fffU) << "without ValidateContainerAdjustment";
  EXPECT_EQ(EventsOfHost({1, 0, 0}), 0x1fffU);
}

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
