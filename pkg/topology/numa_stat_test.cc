// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/numa_stat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(NumaStatTest, ReadsBytesOfCgroupV2) {
  const NumaStat stat =
      ParseNumaStat("anon N0=8192 N1=4096\nfile N0=100 N1=0\nshmem N0=1 N1=1\n", true, true);
  EXPECT_THAT(stat.anonymous, ElementsAre(Pair(0, 8192), Pair(1, 4096)));
  EXPECT_THAT(stat.files, ElementsAre(Pair(0, 100), Pair(1, 0)));
  EXPECT_THAT(stat.All(), ElementsAre(Pair(0, 8292), Pair(1, 4096)));
}

TEST(NumaStatTest, ReadsPagesOfCgroupV1WithAndWithoutTheCgroupsBelow) {
  constexpr const char* kText =
      "total=5 N0=5\nfile=2 N0=2\nanon=3 N0=3\nunevictable=0 N0=0\n"
      "hierarchical_total=9 N0=9\nhierarchical_file=4 N0=4\nhierarchical_anon=5 N0=5\n";
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  EXPECT_THAT(ParseNumaStat(kText, false, false).anonymous, ElementsAre(Pair(0, 3 * page)));
  EXPECT_THAT(ParseNumaStat(kText, false, true).All(), ElementsAre(Pair(0, 9 * page)));
}

TEST(NumaStatTest, LeavesOutWhatIsNoAmount) {
  for (const char* const text : {"", "anon", "anon N0", "anon N0= N=1 Nx=2 N-1=3 N99999=4",
                                 "anon N0=-5", "anon N0=99999999999999999999", "anonymous N0=1"})
    EXPECT_THAT(ParseNumaStat(text, true, true).All(), IsEmpty()) << text;
  EXPECT_THAT(ParseNumaStat("anon=1 N0=9223372036854775807", false, false).anonymous, IsEmpty())
      << "more bytes than there are numbers";
}

}  // namespace
}  // namespace resmgr
