// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::dump {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DifferencesTest, NamesEachValueThatIsAnother) {
  const json before = {{"config", {{"linux", {{"resources", {{"cpu_shares", 512}}}}}}},
                       {"pod_sandbox_id", "p1"}};
  json after = before;
  after["config"]["linux"]["resources"]["cpuset_cpus"] = "1";
  after["config"]["linux"]["resources"]["cpu_shares"] = 1024;
  after["pod_sandbox_id"] = "p2";
  EXPECT_THAT(Differences(before, after), ElementsAre("linux.resources.cpu_shares 512 -> 1024",
                                                      R"(linux.resources.cpuset_cpus "" -> "1")",
                                                      R"(pod_sandbox_id "p1" -> "p2")"));
  EXPECT_THAT(Differences(before, before), IsEmpty());
}

TEST(DifferencesTest, ShowsWhatIsNotSetAsProtobufsDefault) {
  EXPECT_THAT(Differences(json::object(), {{"a", {{"b", {{"n", 7}, {"t", true}}}}}}),
              ElementsAre("a.b.n 0 -> 7", "a.b.t false -> true"));
  EXPECT_THAT(Differences({{"l", {1, 2}}}, json::object()), ElementsAre("l [1,2] -> []"));
}

TEST(DifferencesTest, AreFitForALine) {
  EXPECT_THAT(Differences(json::object(), {{"\x1b]0;\n", "\x7f\n"}}),
              ElementsAre("\\x1b]0;\\x0a \"\" -> \"\\u007f\\n\""));
}

}  // namespace
}  // namespace resmgr::dump
