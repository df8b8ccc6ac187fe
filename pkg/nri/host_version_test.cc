// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::nri {
namespace {

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

}  // namespace
}  // namespace resmgr::nri
