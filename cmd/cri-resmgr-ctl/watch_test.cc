// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/watch.h"

#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using resmgr::test::Fails;
using resmgr::test::IsOk;
using Answers = std::vector<StatusOr<std::string>>;

struct Watched {
  Status status;
  std::string out;
  std::string notes;
};

// The output can no longer be written once all answers were given.
Watched WatchAll(const Answers& answers) {
  std::ostringstream out;
  std::ostringstream notes;
  size_t next = 0;
  const auto look = [&]() -> StatusOr<std::string> {
    const StatusOr<std::string>& answer = answers[next++];
    if (next == answers.size()) out.setstate(std::ios::badbit);
    return answer;
  };
  Status status = Watch(look, out, notes, std::chrono::milliseconds(0));
  return {std::move(status), out.str(), notes.str()};
}

TEST(WatchTest, ShowsATextWheneverItHasChanged) {
  const Watched watched = WatchAll({"a\n", "a\n", "b\n", "c\n"});
  EXPECT_THAT(watched.status, IsOk());
  EXPECT_EQ(watched.out, "a\n\nb\n");
  EXPECT_EQ(watched.notes, "");
}

TEST(WatchTest, GoesOnAfterARestartOfTheDaemonAndSaysSo) {
  const Watched watched = WatchAll({"a\n", Unavailable("it is away"), Unavailable("it is away"),
                                    DeadlineExceeded("it is slow"), "a\n", "b\n", "c\n"});
  EXPECT_THAT(watched.status, IsOk());
  EXPECT_EQ(watched.out, "a\n\na\n\nb\n");
  EXPECT_EQ(watched.notes,
            "cri-resmgr-ctl: waiting: it is away\ncri-resmgr-ctl: the daemon answers again\n");
}

TEST(WatchTest, ADaemonThatNeverAnsweredIsAnError) {
  EXPECT_THAT(WatchAll({Unavailable("there is none")}).status,
              Fails(StatusCode::kUnavailable, "there is none"));
}

TEST(WatchTest, AFinalErrorEndsIt) {
  const Watched watched = WatchAll({"a\n", NotFound("the pod is gone"), "b\n"});
  EXPECT_THAT(watched.status, Fails(StatusCode::kNotFound, "the pod is gone"));
  EXPECT_EQ(watched.out, "a\n");
}

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
