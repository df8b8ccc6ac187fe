// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "agent/credentials.h"
#include "pkg/sys/unique_fd.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::Fails;
using test::IsOk;
using test::Must;
using testing::HasSubstr;

// Runs the command on a loop of its own and returns its result.
StatusOr<std::string> OutputOf(Command command) {
  EventLoop loop;
  LoopCommandRunner runner(loop);
  std::optional<StatusOr<std::string>> result;
  const auto running = runner.Run(std::move(command), [&](StatusOr<std::string> output) {
    result = std::move(output);
    loop.Stop();
  });
  EXPECT_FALSE(result.has_value()) << "never from within Run";
  loop.Run();
  return *result;
}

Command Shell(const std::string& script) {
  return {.argv = {"sh", "-c", script}, .environment = {{"NAME", "value"}}};
}

TEST(CommandTest, GivesTheOutput) {
  const auto output = Must(OutputOf(Shell("echo one; echo $NAME")));
  EXPECT_EQ(output, "one\nvalue\n");
}

TEST(CommandTest, TakesManyPiecesOfOutput) {
  const auto output =
      Must(OutputOf(Shell("i=0; while [ $i -lt 3000 ]; do echo 0123456789; i=$((i+1)); done")));
  EXPECT_EQ(output.size(), 3000u * 11);
}

TEST(CommandTest, SaysHowACommandFailed) {
  EXPECT_THAT(OutputOf(Shell("exit 3")),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("exit status 3")));
  EXPECT_THAT(OutputOf(Shell("kill -9 $$")),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("signal 9")));
  EXPECT_THAT(OutputOf({.argv = {"/nonexistent/program"}}),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("/nonexistent/program")));
}

TEST(CommandTest, EndsACommandThatTakesTooLong) {
  Command command = Shell("sleep 1000");
  command.timeout = std::chrono::milliseconds(20);
  EXPECT_THAT(OutputOf(command), Fails(StatusCode::kFailedPrecondition, HasSubstr("20 ms")));
}

TEST(CommandTest, EndsWhatTheCommandStartedToo) {
  // Its other end closes once no process holds it.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  UniqueFd held(ends[1]);
  const UniqueFd watched(ends[0]);
  Command command = Shell("sleep 1000; true");
  command.timeout = std::chrono::milliseconds(100);
  EXPECT_THAT(OutputOf(command), Fails(StatusCode::kFailedPrecondition, HasSubstr("100 ms")));
  held.Reset();
  pollfd closed{.fd = watched.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, 5000), 1);
}

TEST(CommandTest, EndsACommandThatPrintsTooMuch) {
  EXPECT_THAT(OutputOf(Shell("while :; do echo 0123456789012345678901234567890123456789; done")),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("prints more")));
}

}  // namespace
}  // namespace resmgr::agent
