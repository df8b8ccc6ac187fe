// SPDX-License-Identifier: Apache-2.0
// scripts/demo --stay: the commands that it prints for a second terminal, and its end.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/containerd/child_process.h"
#include "test/support/programs/programs.h"

namespace resmgr::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kDemoPatience(60);

class DemoStayTest : public ::testing::Test {
 protected:
  std::string Output() const { return TextOf(log_); }
  bool Says(const std::string& text) const {
    return WaitUntil(text, kDemoPatience, [&] { return Output().find(text) != std::string::npos; })
        .ok();
  }
  // The directory of the demo's sockets, from the line that tells where commands are written.
  std::filesystem::path Directory() const {
    const std::string output = Output();
    const std::string before = "echo remove db > ";
    const size_t at = output.find(before);
    if (at == std::string::npos) return {};
    const size_t begin = at + before.size();
    return std::filesystem::path(output.substr(begin, output.find('\n', at) - begin)).parent_path();
  }
  std::string Containers() const {
    const std::filesystem::path list = directory_.path() + "/containers";
    std::filesystem::remove(list);
    const Status listed =
        RunProgram({Program("cri-resmgr-ctl"), "-socket", Directory() / "admin.sock", "containers"},
                   list, kDemoPatience);
    EXPECT_TRUE(listed.ok()) << Describe(listed);
    return TextOf(list);
  }
  void Write(const std::string& line) const { std::ofstream(Directory() / "pods") << line << "\n"; }

  const TempDir directory_;
  const std::filesystem::path log_ = directory_.path() + "/output";
};

TEST_F(DemoStayTest, CreatesAndRemovesPodsUntilItIsInterrupted) {
  auto demo = ChildProcess::Start({ProgramAt("test/e2e/resmgr-demo"), "--stay", "--fake"}, log_);
  ASSERT_TRUE(demo.ok()) << Describe(demo.status());
  ASSERT_TRUE(Says("echo remove db > ")) << Output();
  Write("create db 2");
  ASSERT_TRUE(Says("create db 2: done")) << Output();
  EXPECT_THAT(Containers(), HasSubstr("db         Guaranteed"));
  Write("remove db");
  ASSERT_TRUE(Says("remove db: done")) << Output();
  EXPECT_THAT(Containers(), Not(HasSubstr("db         Guaranteed")));
  Write("destroy all");
  EXPECT_TRUE(Says("this takes: create NAME [CPUS], or remove NAME")) << Output();

  const std::filesystem::path directory = Directory();
  (*demo)->Signal(SIGINT);
  const StatusOr<int> ended = (*demo)->Wait(kDemoPatience);
  ASSERT_TRUE(ended.ok()) << Describe(ended.status());
  EXPECT_EQ(*ended, 0) << Output();
  EXPECT_FALSE(std::filesystem::exists(directory));
}

}  // namespace
}  // namespace resmgr::test
