// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/host_file_finder.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/ttrpc/testing/test_loop.h"

namespace resmgr::nri {
namespace {

using ttrpc::test::RunUntil;

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

}  // namespace
}  // namespace resmgr::nri
