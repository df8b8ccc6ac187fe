// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/request_target.h"

#include <gtest/gtest.h>

namespace resmgr::docker {
namespace {

TEST(RequestTargetTest, ReadsWhatChangesContainers) {
  const auto create = ReadTarget("POST", "/v1.41/containers/create?name=k8s_a%5Fb&platform=");
  ASSERT_TRUE(create.has_value());
  EXPECT_EQ(create->action, Action::kCreate);
  EXPECT_EQ(create->name, "k8s_a_b");
  EXPECT_EQ(create->api_minor, 41U);
  EXPECT_FALSE(ReadTarget("POST", "/containers/create")->api_minor);
  EXPECT_EQ(ReadTarget("POST", "/containers/create")->name, "");
  const auto start = ReadTarget("POST", "/containers/a.b-c_1/start");
  EXPECT_EQ(start->action, Action::kStart);
  EXPECT_EQ(start->container, "a.b-c_1");
  EXPECT_EQ(ReadTarget("POST", "/v1.24/containers/abc/stop?t=3")->action, Action::kStop);
  EXPECT_EQ(ReadTarget("POST", "/v1.24/containers/abc/restart")->action, Action::kRestart);
  EXPECT_EQ(ReadTarget("POST", "/v1.24/containers/abc/update")->action, Action::kUpdate);
  const auto kill = ReadTarget("POST", "http://docker/v1.41/containers/abc/kill?signal=SIGHUP");
  EXPECT_EQ(kill->action, Action::kKill);
  EXPECT_EQ(kill->signal, "SIGHUP");
  EXPECT_EQ(ReadTarget("DELETE", "/v1.41/containers/abc?force=1")->container, "abc");
}

TEST(RequestTargetTest, ReadsPercentEncodedPathsAsDockerdDoes) {
  EXPECT_EQ(ReadTarget("POST", "/%63ontainers/%61bc/st%61rt")->container, "abc");
  EXPECT_EQ(ReadTarget("POST", "/v1%2E41/containers/abc%2Fstop")->action, Action::kStop);
  EXPECT_FALSE(ReadTarget("POST", "/containers/%zz/start").has_value());
}

// dockerd 20.10 creates a container for each.
TEST(RequestTargetTest, ReadsAbsoluteUrlsAsDockerdDoes) {
  for (const char* const target :
       {"x:/v1.41/containers/create", "http:/v1.41/containers/create", "X:/containers/create",
        "a+b.c-d:/v1.41/containers/create", "http://host/v1.41/containers/create",
        "http:///v1.41/containers/create", "x:///containers/create",
        "x://[::1]/v1.41/containers/create", "x://user@host:99999/v1.41/containers/create",
        "x:/v1.41/%63ontainers%2Fcreate", "x:/v1.41/containers/create?name=x:/y",
        "/v1.41%2Fcontainers%2Fcreate", "/%761.41/containers/create"}) {
    const auto read = ReadTarget("POST", target);
    ASSERT_TRUE(read.has_value()) << target;
    EXPECT_EQ(read->action, Action::kCreate) << target;
  }
  // dockerd redirects these or does not find the page.
  for (const char* const target :
       {"x:v1.41/containers/create", "http://host?/containers/create", "x://host",
        "x:", "x:/%2e/v1.41/containers/create", "x://host//containers/create",
        "/V1.41/containers/create", "/v1.41/Containers/create", "/a:b/../v1.41/containers/create"})
    EXPECT_FALSE(ReadTarget("POST", target).has_value()) << target;
}

TEST(RequestTargetTest, EverythingElsePasses) {
  for (const char* const target :
       {"/containers/abc/exec", "/containers/abc/wait", "/containers/abc/attach?stream=1", "/build",
        "/images/create", "/containers/prune", "/v1.41x/containers/create", "//containers/create",
        "/a/../containers/create", "/containers/create/", "/containers//start", "*", "abc"}) {
    EXPECT_FALSE(ReadTarget("POST", target).has_value()) << target;
  }
  EXPECT_FALSE(ReadTarget("GET", "/containers/abc/json").has_value());
  EXPECT_FALSE(ReadTarget("DELETE", "/images/abc").has_value());
}

TEST(RequestTargetTest, OnlyTheSignalThatNothingSurvivesIsAKill) {
  for (const char* const signal : {"", "KILL", "SIGKILL", "sigkill", "9"})
    EXPECT_TRUE(IsKill(signal)) << signal;
  for (const char* const signal : {"TERM", "15", "HUP"})
    EXPECT_FALSE(IsKill(signal)) << signal;
}

}  // namespace
}  // namespace resmgr::docker
