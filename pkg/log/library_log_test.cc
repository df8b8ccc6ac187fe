// SPDX-License-Identifier: Apache-2.0
#include "pkg/log/library_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::EndsWith;
using testing::SizeIs;

TEST(LibraryLogTest, SaysTenLinesAMinuteEscaped) {
  std::vector<std::string> lines;
  SetLogWriter([&lines](std::string_view line) { lines.emplace_back(line); });
  LibraryLog log("library");
  for (int i = 0; i < 1000; ++i)
    log.Say(LogLevel::kWarn, "field\x1b]0;x");
  log.Say(LogLevel::kDebug, "chatter");
  SetLogWriter(nullptr);
  ASSERT_THAT(lines, SizeIs(10));
  EXPECT_THAT(lines[0], EndsWith(" warning [library] field\\x1b]0;x\n"));
}

}  // namespace
}  // namespace resmgr
