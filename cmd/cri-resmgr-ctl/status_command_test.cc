// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/status_command.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace resmgr
