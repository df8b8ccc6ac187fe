// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/problems_watch.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/wait.h"

namespace resmgr {
namespace {

using test::RunUntil;
using testing::EndsWith;
using testing::HasSubstr;

TEST(ProblemsWatchTest, CountsEachKindAndTellsThoseThatAreNew) {
  EventLoop loop;
  std::vector<Problem> problems;
  ProblemsWatch::Counts counts;
  std::vector<PodEvent> told;
  int looks = 0;
  const ProblemsWatch watch({.loop = loop,
                             .problems = [&] { return problems; },
                             .count =
                                 [&](const ProblemsWatch::Counts& now) {
                                   counts = now;
                                   ++looks;
                                 },
                             .tell = [&](PodEvent event) { told.push_back(std::move(event)); },
                             .period = std::chrono::milliseconds(1)});
  const auto look = [&] {
    const int before = looks;
    return RunUntil(loop, [&] { return looks > before; });
  };
  ASSERT_TRUE(look());
  EXPECT_EQ(counts.size(), kProblemKinds.size()) << "alerts need the series of each kind";
  EXPECT_EQ(counts["drift"], 0U);
  problems = {{.kind = "drift", .message = "a", .next = "cri-resmgr-ctl audit"},
              {.kind = "drift", .message = "b"},
              {.kind = "cpu-manager-on", .message = "c"}};
  ASSERT_TRUE(look());
  ASSERT_TRUE(look());
  EXPECT_EQ(counts["drift"], 2U);
  ASSERT_EQ(told.size(), 2U) << "one for each kind, once";
  EXPECT_EQ(told[0].reason, "ProblemCpuManagerOn");
  EXPECT_EQ(told[1].reason, "ProblemDrift");
  EXPECT_EQ(told[1].message,
            "a (and 1 more); try: cri-resmgr-ctl audit; see docs/troubleshooting.md#drift");
  EXPECT_EQ(told[1].pod, "") << "of the node";
  EXPECT_TRUE(told[1].warning);
  problems.clear();
  ASSERT_TRUE(look());
  EXPECT_EQ(counts["drift"], 0U);
  problems = {{.kind = "drift", .message = "again"}};
  ASSERT_TRUE(look());
  EXPECT_EQ(told.size(), 3U);
}

TEST(ProblemsWatchTest, AnEventIsNotLongerThanTheApiServerTakes) {
  const PodEvent event =
      NodeEventOf({.kind = "refused", .message = std::string(5000, 'x'), .next = "y"}, 1);
  EXPECT_LE(event.message.size(), 1024U);
  EXPECT_THAT(event.message, EndsWith("; see docs/troubleshooting.md#refused"));
}

// Each kind leads to a section of the page.
TEST(RunbookTest, HasASectionForEachKind) {
  std::ifstream file(RESMGR_SOURCE_DIR "/docs/troubleshooting.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string_view kind : kProblemKinds)
    EXPECT_THAT(page, HasSubstr("\n### " + std::string(kind) + "\n"));
}

}  // namespace
}  // namespace resmgr
