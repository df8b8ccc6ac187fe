// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/problems_json.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

using Time = std::chrono::system_clock::time_point;
using std::chrono::seconds;

TEST(ProblemsJsonTest, IsTheContract) {
  EXPECT_EQ(ProblemsJson({{.kind = "throttled",
                           .since = Time(seconds(0)),
                           .message = "m",
                           .objects = {"ns/web/main"},
                           .next = "n"}})
                .dump(),
            R"([{"kind":"throttled","since":"1970-01-01T00:00:00.000Z","message":"m",)"
            R"("objects":["ns/web/main"],"next":"n"}])");
  EXPECT_EQ(ProblemsJson({}).dump(), "[]");
}

TEST(ProblemTimesTest, ProblemsWithoutATimeAreSinceTheyWereListedFirst) {
  ProblemTimes times;
  const Problem state{.kind = "state", .message = "m"};
  const Problem known{.kind = "throttled", .since = Time(seconds(7))};
  const Problem drift{.kind = "drift", .message = "in 2 audits", .objects = {"a"}};
  const Problem later{.kind = "drift", .message = "in 3 audits", .objects = {"a"}};
  auto listed = times.Completed({state, known, drift}, Time(seconds(10)));
  EXPECT_EQ(listed[0].since, Time(seconds(10)));
  EXPECT_EQ(listed[1].since, Time(seconds(7)));
  listed = times.Completed({state, later}, Time(seconds(20)));
  EXPECT_EQ(listed[0].since, Time(seconds(10)));
  EXPECT_EQ(listed[1].since, Time(seconds(10))) << "with other numbers";
  times.Completed({}, Time(seconds(30)));
  EXPECT_EQ(times.Completed({state}, Time(seconds(40)))[0].since, Time(seconds(40)));
}

}  // namespace
}  // namespace resmgr
