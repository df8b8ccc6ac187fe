// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/top_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::HasSubstr;

Reply Containers() {
  return Reply::parse(R"([
      {"namespace":"ns","pod":"web","container":"main","id":"a","cpus":"1-2","granted":2.0,
       "cpuUsed":1.234,"throttledPercent":12.5,"cpuPressure10":1.5,"cpuPressure60":2.5,
       "memoryBytes":4194304,"memoryByNode":{"0":4194304},"remotePercent":0.0,"pool":"exclusive",
       "since":"s"},
      {"namespace":"ns","pod":"db","container":"main","id":"b","cpus":"","granted":0.0,
       "cpuUsed":null,"throttledPercent":null,"cpuPressure10":null,"cpuPressure60":null,
       "memoryBytes":null,"memoryByNode":{},"remotePercent":null,"pool":"","since":"s"},
      {"namespace":"ns","pod":"api","container":"main","id":"c","cpus":"0","granted":0.5,
       "cpuUsed":1.5,"throttledPercent":0.0,"cpuPressure10":null,"cpuPressure60":null,
       "memoryBytes":1024,"memoryByNode":{},"remotePercent":50.0,"pool":"shared","since":"s"}])");
}

std::string Order(std::string_view key) {
  std::string ids;
  for (const Reply& container : SortedUsage(Containers(), key))
    ids += container.value("id", "");
  return ids;
}

TEST(TopCommandTest, SortsByEachKeyAndPutsWhatIsNotKnownLast) {
  EXPECT_EQ(Order("cpu"), "cab");
  EXPECT_EQ(Order("throttled"), "acb");
  EXPECT_EQ(Order("pressure"), "abc");
  EXPECT_EQ(Order("memory"), "acb");
  EXPECT_EQ(Order("remote"), "cab");
  EXPECT_EQ(Order("name"), "cba");
}

TEST(TopCommandTest, ShowsContainers) {
  EXPECT_EQ(ContainersUsageText(SortedUsage(Containers(), "throttled")),
            "NAMESPACE  POD  CONTAINER  CPUS  USED  GRANTED  THROTTLED  PRESSURE   MEMORY  REMOTE  "
            "POOL\n"
            "ns         web  main       1-2   1.23  2.00     12 %       2 % / 2 %  4 MiB   0 %     "
            "exclusive\n"
            "ns         api  main       0     1.50  0.50     0 %        -          1 KiB   50 %    "
            "shared\n"
            "ns         db   main       -     -     0.00     -          -          -       -       "
            "-\n");
  EXPECT_EQ(ContainersUsageText(Reply::array()), "No running containers whose use is known.\n");
}

TEST(TopCommandTest, WideShowsEventsOfMemory) {
  const Reply containers = Reply::parse(R"([
      {"namespace":"ns","pod":"web","container":"main","pool":"shared","oomKills":2,
       "memoryHighEvents":1200},
      {"namespace":"ns","pod":"db","container":"main","pool":"p","oomKills":0,
       "memoryHighEvents":null}])");
  const std::string text = ContainersUsageText(containers, {}, true);
  EXPECT_THAT(text, HasSubstr("  POOL    OOM KILLS  HIGH\n"));
  EXPECT_THAT(text, HasSubstr("  shared  2          1200\n"));
  EXPECT_THAT(text, HasSubstr("  p       0          -\n"));
}

TEST(TopCommandTest, ShowsCpusAsABusyMap) {
  const Reply cpus = Reply::parse(R"([
      {"id":0,"state":"reserved","containers":[],"busyPercent":null},
      {"id":1,"state":"shared","containers":["a","b","c","d","e"],"busyPercent":42.0}])");
  const std::string text = CpusText(cpus);
  EXPECT_THAT(text, HasSubstr("0    reserved  -"));
  EXPECT_THAT(text, HasSubstr("1    shared    42 %  ########............  a, b, c and 2 more\n"));
}

TEST(TopCommandTest, ShowsNodes) {
  const Reply nodes = Reply::parse(R"([{"id":0,"cpus":"0-1","cpuUsed":0.75,"memoryBytes":1073741824,
      "memoryUsed":1048576,"containerBytes":0,"otherPagesPercent":null}])");
  EXPECT_THAT(NodesUsageText(nodes), HasSubstr("0     0-1   0.75       1 GiB   1 MiB  0"));
}

}  // namespace
}  // namespace resmgr
