// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/status_command.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

TEST(StatusCommandTest, ShowsProblemsOfThisVersionAndOfOlderOnes) {
  const Reply problems = Reply::parse(R"([{"kind":"state","message":"it is not saved","next":""},
      {"kind":"throttled","message":"ns/web/main waits","next":"echo max"},
      "the state cannot be saved: see the log"])");
  EXPECT_EQ(ProblemText(problems[0]), "state: it is not saved");
  EXPECT_EQ(ProblemText(problems[1]), "throttled: ns/web/main waits; try: echo max");
  EXPECT_EQ(ProblemText(problems[2]), "the state cannot be saved: see the log");
}

TEST(StatusCommandTest, ASocketIsNamedOnce) {
  EXPECT_EQ(WithSocket("connected", "/run/c.sock"), "connected (/run/c.sock)");
  const std::string error = "no runtime: cannot connect to /run/c.sock: there is no such socket";
  EXPECT_EQ(WithSocket(error, "/run/c.sock"), error);
}

TEST(StatusCommandTest, NamesThePagesOfThePackageWhereTheyAreInstalled) {
  const TempDir root;
  const std::filesystem::path program = root.File("usr/bin/cri-resmgr-ctl");
  EXPECT_EQ(PagesOf(program), "") << "a path in the source";
  const std::filesystem::path pages = root.File("usr/share/doc/cri-resmgr");
  std::filesystem::create_directories(pages / "docs");
  EXPECT_EQ(PagesOf(program), "") << "without the pages";
  std::ofstream(pages / "docs/troubleshooting.md") << "### drift\n";
  EXPECT_EQ(PagesOf(program), pages.string() + "/");
}

}  // namespace
}  // namespace resmgr
