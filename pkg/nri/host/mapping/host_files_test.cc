// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/host_files.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/nri/host/mapping/host_file_finder.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::nri {
namespace {

using ttrpc::test::RunUntil;

std::string PathOf(const WantedDevice& device) {
  return FindDevices({device})[0].path;
}

// Every Linux has /dev/null, the character device 1:3.
TEST(HostFilesTest, FindsADeviceByItsNumbers) {
  const WantedDevice null{.container_path = "/dev/null", .major = 1, .minor = 3};
  EXPECT_EQ(PathOf(null), "/dev/null");
  EXPECT_EQ(FindDevices({null})[0].mode, 0666U);
}

TEST(HostFilesTest, FindsADeviceThatHasAnotherNameOnTheNode) {
  EXPECT_EQ(PathOf({.container_path = "/dev/other-null", .major = 1, .minor = 3}), "/dev/null");
}

TEST(HostFilesTest, AnotherDeviceOfThatNameIsNotTaken) {
  // No driver has the major number 4095.
  EXPECT_EQ(PathOf({.container_path = "/dev/null", .major = 4095, .minor = 3}), "");
  EXPECT_EQ(PathOf({.container_path = "/dev/null", .block = true, .major = 1, .minor = 3}), "");
  EXPECT_EQ(PathOf({.container_path = "/", .major = 0, .minor = 0}), "");
}

// Every Linux has a mount below "/": /proc.
TEST(HostFilesTest, FindsWhatIsMountedBelowAPath) {
  const TempDir directory;
  ASSERT_EQ(::symlink("/", directory.File("link").c_str()), 0);
  const auto found = FindHostFiles({.mounts = {{.host_path = "/"},
                                               {.host_path = directory.File("link")},
                                               {.host_path = directory.path()},
                                               {.host_path = directory.File("none")}}},
                                   "/none");
  ASSERT_TRUE(found.ok()) << Describe(found.status());
  ASSERT_EQ(found->below.size(), 4U);
  EXPECT_NE(found->below[0], "");
  EXPECT_EQ(found->below[1], found->below[0]);
  EXPECT_EQ(found->below[2], "");
  EXPECT_EQ(found->below[3], "");
}

// Runtimes resolve these in another way than the kernel, or not at all.
TEST(HostFilesTest, WhereAPathLeadsIsNotKnownOfThese) {
  const TempDir directory;
  ASSERT_EQ(::symlink(directory.File("loop").c_str(), directory.File("loop").c_str()), 0);
  ASSERT_EQ(::symlink("/proc", directory.File("link").c_str()), 0);
  for (const std::string& path :
       {std::string("/none/.."), std::string("relative"), directory.File("loop"),
        directory.File("link") + "/..", std::string("/dev/null/x")}) {
    const auto found = FindHostFiles({.mounts = {{.host_path = path}}}, "/none");
    ASSERT_TRUE(found.ok()) << Describe(found.status());
    EXPECT_EQ(found->below[0], path) << "it may have something below it";
  }
  for (const std::string& path : {std::string("//"), std::string("/proc/../"), std::string("/.")}) {
    const auto found = FindHostFiles({.mounts = {{.host_path = path}}}, "/none");
    ASSERT_TRUE(found.ok()) << Describe(found.status());
    EXPECT_THAT(found->below[0], testing::MatchesRegex("/.+")) << path;
  }
}

TEST(HostFilesTest, WritesASeccompPolicyForTheRuntime) {
  const TempDir directory;
  const std::string path = directory.path() + "/profiles/c1.json";

  const auto found = FindHostFiles({.seccomp_policy = "{}"}, path);

  ASSERT_TRUE(found.ok()) << Describe(found.status());
  EXPECT_EQ(found->seccomp_profile, path);
  EXPECT_EQ(*ReadFile(path, 10), "{}");
  EXPECT_FALSE(FindHostFiles({.seccomp_policy = "{}"}, "/none/of/it").ok());
  EXPECT_EQ(FindHostFiles({}, "/none/of/it")->seccomp_profile, "");
}

// A finder whose results the test collects.
class HostFileFinderTest : public testing::Test {
 protected:
  using Answer = std::optional<StatusOr<FoundFiles>>;

  HostFileFinder::Done To(Answer& answer) {
    return [&answer](StatusOr<FoundFiles> found) { answer = std::move(found); };
  }
  void Wait(const Answer& answer) {
    ASSERT_TRUE(RunUntil(loop_, [&answer] { return answer.has_value(); }));
  }

  EventLoop loop_;
};

TEST_F(HostFileFinderTest, AnswersWithWhatItsThreadFinds) {
  HostFileFinder finder(loop_, {.profile_directory = "/profiles",
                                .find = [](const HostFiles& files, const std::string& path) {
                                  return FoundFiles{
                                      .devices = {{.path = files.devices.at(0).container_path}},
                                      .seccomp_profile = path};
                                }});
  Answer answer;
  finder.Ask({.devices = {{.container_path = "/dev/x"}}, .seccomp_policy = {}}, "c1", To(answer));
  EXPECT_FALSE(answer.has_value()) << "never inside the call";
  Wait(answer);
  EXPECT_EQ((*answer)->devices.at(0).path, "/dev/x");
  EXPECT_THAT((*answer)->seccomp_profile, testing::MatchesRegex("/profiles/[0-9a-f]{16}-c1.json"));
}

TEST_F(HostFileFinderTest, AHangDelaysNoQuestionForLong) {
  // A shared promise, since the threads outlive the finder.
  const auto hang = std::make_shared<std::promise<void>>();
  const auto end = std::make_shared<std::shared_future<void>>(hang->get_future());
  HostFileFinder finder(loop_, {.profile_directory = "/profiles",
                                .deadline = std::chrono::milliseconds(1),
                                .most_at_once = 1,
                                .find = [end](const HostFiles&, const std::string&) {
                                  end->wait();
                                  return FoundFiles();
                                }});
  Answer first;
  Answer second;
  finder.Ask({}, "c1", To(first));
  finder.Ask({}, "c2", To(second));
  Wait(first);
  Wait(second);
  EXPECT_EQ(first->status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(second->status().code(), StatusCode::kUnavailable);

  hang->set_value();
  Answer third;
  ASSERT_TRUE(RunUntil(loop_, [&] {
    if (third && third->ok()) return true;
    finder.Ask({}, "c3", To(third));
    return false;
  }));
}

TEST_F(HostFileFinderTest, AProfileThatComesTooLateIsForgotten) {
  const TempDir directory;
  std::promise<void> late;
  std::atomic<bool> written = false;
  std::string path;
  HostFileFinder finder(loop_, {.profile_directory = directory.path(),
                                .deadline = std::chrono::milliseconds(1),
                                .find = [wait = late.get_future().share(), &written, &path](
                                            const HostFiles& files, const std::string& profile) {
                                  wait.wait();
                                  path = profile;
                                  auto found = FindHostFiles(files, profile);
                                  written = true;
                                  return found;
                                }});
  Answer answer;
  finder.Ask({.devices = {}, .seccomp_policy = "{}"}, "c1", To(answer));
  Wait(answer);
  EXPECT_EQ(answer->status().code(), StatusCode::kDeadlineExceeded);
  late.set_value();

  EXPECT_TRUE(RunUntil(loop_, [&] { return written && ::access(path.c_str(), F_OK) != 0; }));
}

TEST_F(HostFileFinderTest, ForgetsAProfile) {
  const TempDir directory;
  HostFileFinder finder(loop_, {.profile_directory = directory.path(), .find = FindHostFiles});
  Answer answer;
  finder.Ask({.devices = {}, .seccomp_policy = "{}"}, "c1", To(answer));
  Wait(answer);
  const std::string path = (*answer)->seccomp_profile;
  ASSERT_EQ(::access(path.c_str(), F_OK), 0);

  finder.Forget(**answer);
  EXPECT_TRUE(RunUntil(loop_, [&path] { return ::access(path.c_str(), F_OK) != 0; }));
}

TEST_F(HostFileFinderTest, AProfileIsForgottenOnceAThreadIsFree) {
  const TempDir directory;
  const auto hang = std::make_shared<std::promise<void>>();
  HostFileFinder finder(loop_, {.profile_directory = directory.path(),
                                .most_at_once = 1,
                                .find = [end = hang->get_future().share()](
                                            const HostFiles& files, const std::string& profile) {
                                  if (profile.ends_with("hangs.json")) end.wait();
                                  return FindHostFiles(files, profile);
                                }});
  Answer answer;
  finder.Ask({.devices = {}, .seccomp_policy = "{}"}, "c1", To(answer));
  Wait(answer);
  const std::string path = (*answer)->seccomp_profile;
  ASSERT_EQ(::access(path.c_str(), F_OK), 0);
  Answer busy;
  finder.Ask({}, "hangs", To(busy));
  const auto gone = [&path] { return ::access(path.c_str(), F_OK) != 0; };
  finder.Forget(**answer);
  EXPECT_FALSE(RunUntil(loop_, gone, std::chrono::milliseconds(20)));
  hang->set_value();
  Wait(busy);
  EXPECT_TRUE(busy->ok()) << "it had the only thread";
  EXPECT_TRUE(RunUntil(loop_, gone));
}

// A profile is left, as after kill -9 between writing it and the runtime's answer.
TEST_F(HostFileFinderTest, WhatAnEarlierOneHasLeftIsRemoved) {
  const TempDir directory;
  const HostFileFinder::Options options{.profile_directory = directory.path()};
  Answer answer;
  {
    HostFileFinder killed(loop_, options);
    killed.Ask({.devices = {}, .seccomp_policy = "{}"}, "c1", To(answer));
    Wait(answer);
  }
  const std::string left = (*answer)->seccomp_profile;
  std::ofstream(left + ".tmp") << "{";
  std::ofstream(directory.File("other")) << "of somebody else";
  HostFileFinder finder(loop_, options);
  Answer own;
  finder.Ask({.devices = {}, .seccomp_policy = "{}"}, "c1", To(own));
  Wait(own);
  finder.RemoveLeft();
  EXPECT_TRUE(RunUntil(loop_, [&] {
    return ::access(left.c_str(), F_OK) != 0 && ::access((left + ".tmp").c_str(), F_OK) != 0;
  }));
  EXPECT_EQ(::access((*own)->seccomp_profile.c_str(), F_OK), 0);
  EXPECT_EQ(::access(directory.File("other").c_str(), F_OK), 0);
}

constexpr const char* kNode = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";

class NodePathsTest : public testing::Test {
 protected:
  void Link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(::symlink(target.c_str(), directory_.File(name).c_str()), 0);
  }
  // Resolves with `mine` as the process' own mounts besides the node's.
  std::optional<std::string> Resolve(const std::string& path, const std::string& mine = "") const {
    const MountTable node(kNode);
    const MountTable own(kNode + mine);
    return NodePaths({.node = node, .own = own}).Resolve(path);
  }
  std::optional<std::string> ResolveBelow(const std::string& path) const {
    const MountTable node(kNode);
    const MountTable own("");
    return NodePaths({.node = node, .own = own, .root = directory_.path()}).Resolve(path);
  }
  std::string Hidden(const std::string& root) const {
    return fmt::format("23 22 8:1 {} {} rw - ext4 /dev/sda1 rw\n", root, directory_.path());
  }

  const TempDir directory_;
};

TEST_F(NodePathsTest, FollowsLinks) {
  Link("/", "absolute");
  Link("absolute/tmp", "relative");
  EXPECT_EQ(Resolve(directory_.File("relative")), "/tmp");
  EXPECT_EQ(Resolve(directory_.File("absolute")), "/");
  EXPECT_EQ(Resolve("//tmp//./"), "/tmp");
  EXPECT_EQ(Resolve(directory_.path() + "//none/./x/"), directory_.path() + "/none/x")
      << "a runtime makes it";
}

// PrivateTmp=yes makes such a mount.
TEST_F(NodePathsTest, WhatTheNodeHasElsewhereIsNotKnown) {
  Link("/", "link");
  for (const std::string& path :
       {directory_.File("link"), directory_.File("none"), directory_.path()})
    EXPECT_EQ(Resolve(path, Hidden("/private")), std::nullopt) << path;
  EXPECT_EQ(Resolve("/", Hidden("/private")), "/");
  // ProtectSystem=strict mounts the same file system again.
  EXPECT_EQ(Resolve(directory_.File("link"), Hidden(directory_.path())), "/");
}

TEST_F(NodePathsTest, LinksOfANodeWithAnotherRootStayBelowIt) {
  std::filesystem::create_directories(directory_.File("data/deep"));
  Link("/data", "link");
  Link("../../../../data/deep", "up");
  EXPECT_EQ(ResolveBelow("/link/deep"), "/data/deep");
  EXPECT_EQ(ResolveBelow("/up"), "/data/deep");
}

TEST_F(NodePathsTest, EndlessLinksLeadNowhere) {
  Link("loop", "loop");
  Link("more/more", "more");
  EXPECT_EQ(Resolve(directory_.File("loop")), std::nullopt);
  EXPECT_EQ(Resolve(directory_.File("more")), std::nullopt);
}

TEST_F(NodePathsTest, ParentsCountWhereAllReadThemAlike) {
  Link("/proc/self", "link");
  EXPECT_EQ(Resolve("/proc/../tmp"), "/tmp");
  EXPECT_EQ(Resolve("/.."), "/");
  EXPECT_EQ(Resolve(directory_.File("link") + "/.."), std::nullopt);
  EXPECT_EQ(Resolve("/none/.."), std::nullopt);
  EXPECT_EQ(Resolve(""), std::nullopt);
  EXPECT_EQ(Resolve("tmp"), std::nullopt);
}

}  // namespace
}  // namespace resmgr::nri
