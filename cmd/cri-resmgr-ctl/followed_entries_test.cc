// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/followed_entries.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

Reply Entry(const char* time, const char* event) {
  return Reply{{"time", time}, {"event", event}};
}

TEST(FollowedEntriesTest, EachEntryIsNewOnce) {
  FollowedEntries followed;
  EXPECT_EQ(followed.NewOf({Entry("1", "a"), Entry("2", "b")}).size(), 2U);
  EXPECT_EQ(followed.NewOf({Entry("1", "a"), Entry("2", "b")}), Reply::array());
  EXPECT_EQ(followed.NewOf({Entry("2", "b"), Entry("2", "c")}), Reply::array({Entry("2", "c")}));
  EXPECT_EQ(followed.NewOf({Entry("2", "b"), Entry("2", "c"), Entry("2", "c")}),
            Reply::array({Entry("2", "c")}))
      << "the same twice";
}

TEST(FollowedEntriesTest, EntriesAfterTheClockWasSetBackAreNew) {
  FollowedEntries followed;
  followed.NewOf({Entry("8", "a"), Entry("9", "b")});
  EXPECT_EQ(followed.NewOf({Entry("8", "a"), Entry("9", "b"), Entry("3", "c")}),
            Reply::array({Entry("3", "c")}));
  EXPECT_EQ(followed.NewOf({Entry("9", "b"), Entry("3", "c"), Entry("4", "d")}),
            Reply::array({Entry("4", "d")}));
}

TEST(FollowedEntriesTest, EntriesThatAreKeptOverARestartAreNotNew) {
  FollowedEntries followed;
  followed.NewOf({Entry("1", "refused"), Entry("2", "b")});
  EXPECT_EQ(followed.NewOf({Entry("1", "refused"), Entry("5", "e")}),
            Reply::array({Entry("5", "e")}));
}

}  // namespace
}  // namespace resmgr
