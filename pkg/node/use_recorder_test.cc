// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/dump/dump_fixture.h"
#include "pkg/node/usage_watch.h"

namespace resmgr {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::SizeIs;

class UseRecorderTest : public dump::DumpFixture {
 protected:
  void SetUp() override { Record(); }
  void Record() { ASSERT_TRUE(Start({.specs = {"record:" + PathOf("r.jsonl")}}).ok()); }

  static UsageFigures At(seconds time, double cpus, size_t containers = 1) {
    UsageFigures figures{.at = std::chrono::steady_clock::time_point(seconds(1000) + time),
                         .complete = true};
    for (size_t i = 0; i < containers; ++i) {
      figures.containers.push_back({.subject = {.id = "c" + std::to_string(i)},
                                    .cpu_used = i == 0 ? cpus : 1,
                                    .waited_percent = 10});
    }
    return figures;
  }
  // All lines of use.
  std::vector<json> Lines() {
    EXPECT_TRUE(dumper_->Close(seconds(30)));
    std::vector<json> lines;
    for (const std::string& line : LinesOf(PathOf("r.jsonl")))
      if (json parsed = json::parse(line); parsed.contains("use"))
        lines.push_back(parsed.at("use"));
    return lines;
  }
};

TEST_F(UseRecorderTest, ALineAMinuteHasWhatChanged) {
  UseRecorder recorder(*dumper_);
  recorder.Observe(At(seconds(0), 1, 2));
  recorder.Observe(At(seconds(30), 2, 2));
  recorder.Observe(At(seconds(60), 2, 2));
  recorder.Observe(At(seconds(120), 2.01, 2));
  const std::vector<json> lines = Lines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], (json{{"c0", {1.0, 10.0}}, {"c1", {1.0, 10.0}}}));
  EXPECT_EQ(lines[1], (json{{"c0", {2.0, 10.0}}}));
}

TEST_F(UseRecorderTest, WhatFoundNoRoomIsRecordedWithTheNextSample) {
  int lost = 0;
  ASSERT_TRUE(Start({.specs = {"record:" + PathOf("r.jsonl")},
                     .queue_events = 0,
                     .on_lost = [&lost] { ++lost; }})
                  .ok());
  UseRecorder recorder(*dumper_);
  recorder.Observe(At(seconds(0), 1));
  EXPECT_EQ(lost, 1);
  recorder.Observe(At(seconds(10), 1));
  EXPECT_EQ(lost, 2) << "it is tried again before a minute has passed, though nothing changed";
}

TEST_F(UseRecorderTest, ANewRecordingBeginsWithAllAndALineIsBounded) {
  UseRecorder recorder(*dumper_);
  recorder.Observe(At(seconds(0), 1));
  ASSERT_TRUE(Reconfigure({.specs = {"record:" + PathOf("r.jsonl")}}).ok());
  recorder.Observe(At(seconds(1), 1, 3000));
  const std::vector<json> lines = Lines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], SizeIs(UseRecorder::kMostContainers));
}

}  // namespace
}  // namespace resmgr
