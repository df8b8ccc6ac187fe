// SPDX-License-Identifier: Apache-2.0
#include "agent/object_watch.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fails;
using test::IsOk;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kAny[] = "/api/v1/nodes";

Json Node(const std::string& version, const std::string& name = "n1") {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}}}};
}
Json ListOf(const std::string& version, const std::vector<Json>& items) {
  return {{"metadata", {{"resourceVersion", version}}}, {"items", items}};
}
std::string Line(const std::string& type, const Json& object) {
  return JsonText({{"type", type}, {"object", object}}) + "\n";
}

class ObjectWatchTest : public testing::Test {
 protected:
  ObjectWatchTest() { watch_.Start(); }

  bool Listing() { return transport_.Has(kAny) && !transport_.Has("watch=1"); }
  bool WatchingFrom(const std::string& version) {
    return transport_.Has("watch=1&allowWatchBookmarks=true&resourceVersion=" + version + "&");
  }
  // Lists and begins to watch.
  void Begin() {
    ASSERT_TRUE(transport_.Answer(kAny, 200, ListOf("5", {Node("4")})));
    ASSERT_TRUE(WatchingFrom("5"));
    seen_.clear();
  }
  void EndWatch() {
    transport_.Answer("watch=1", HttpReply{.status = 200, .body = "", .retry_after = {}});
  }

  FakeTransport transport_;
  ManualClock timers_;
  std::vector<std::string> seen_;  // versions, "-" for absent
  RetryGate gate_{{.first = milliseconds(100), .limit = milliseconds(1000)}, 1};
  ObjectWatch watch_{
      transport_,
      timers_,
      gate_,
      {.collection = kAny, .name = "n1", .metadata_only = true},
      {.backoff = {.first = milliseconds(100), .limit = milliseconds(1000)},
       .watch_timeout = seconds(300),
       .seed = 1},
      [this](const Json* object) {
        seen_.push_back(object == nullptr ? "-" : TextAt(*object, {"metadata", "resourceVersion"}));
      }};
};

TEST_F(ObjectWatchTest, AsksForOneNameOnly) {
  EXPECT_THAT(transport_.Request(kAny).target, HasSubstr("fieldSelector=metadata.name%3Dn1"));
  Begin();
  EXPECT_THAT(transport_.Request(kAny).target,
              AllOf(HasSubstr("fieldSelector=metadata.name%3Dn1"), HasSubstr("timeoutSeconds=")));
}

TEST_F(ObjectWatchTest, TellsWhatTheListHolds) {
  transport_.Answer(kAny, 200, ListOf("5", {Node("3", "other"), Node("4")}));
  EXPECT_THAT(seen_, ElementsAre("4"));
}

TEST_F(ObjectWatchTest, TellsThatThereIsNone) {
  transport_.Answer(kAny, 200, Json{{"metadata", {{"resourceVersion", "5"}}}, {"items", nullptr}});
  EXPECT_THAT(seen_, ElementsAre("-"));
  EXPECT_TRUE(WatchingFrom("5"));
}

TEST_F(ObjectWatchTest, FollowsTheObject) {
  Begin();
  transport_.Stream(kAny, Line("MODIFIED", Node("6")) + Line("MODIFIED", Node("7", "other")));
  transport_.Stream(kAny, Line("DELETED", Node("8")) + Line("ADDED", Node("9")));
  EXPECT_THAT(seen_, ElementsAre("6", "-", "9"));
}

TEST_F(ObjectWatchTest, GoesOnFromTheLastVersionSeen) {
  Begin();
  transport_.Stream(kAny, Line("MODIFIED", Node("6")));
  EndWatch();
  timers_.RunNext();
  EXPECT_TRUE(WatchingFrom("6"));
  transport_.Stream(kAny, Line("BOOKMARK", Node("60", "")));
  EndWatch();
  timers_.RunNext();
  EXPECT_TRUE(WatchingFrom("60"));
}

TEST_F(ObjectWatchTest, ListsAnewWhenItsVersionIsGone) {
  Begin();
  transport_.Stream(kAny, Line("ERROR", {{"code", 410}, {"message", "too old"}}));
  EXPECT_EQ(transport_.open(), 0u) << "the stream is given up";
  timers_.RunNext();
  EXPECT_TRUE(Listing());
  EXPECT_THAT(transport_.Request(kAny).target, HasSubstr("&resourceVersion=5"))
      << "a cache that lags behind would give a former state";
  transport_.Answer(kAny, 200, ListOf("70", {Node("66")}));
  EXPECT_THAT(seen_, ElementsAre("66"));
  transport_.Answer(kAny, 410, Json::object());
  timers_.RunNext();
  EXPECT_TRUE(Listing());
}

// An API server with an older state than the agent has seen, as after a restoration of its data.
TEST_F(ObjectWatchTest, TakesAnOlderStateIfTheServerHasNoOther) {
  Begin();
  transport_.Answer(kAny, 410, Json::object());
  for (int list = 0; list < 2; ++list) {
    timers_.RunNext();
    ASSERT_TRUE(Listing());
    transport_.Answer(kAny, 504, Json::object());
  }
  timers_.RunNext();
  EXPECT_THAT(transport_.Request(kAny).target, HasSubstr("&resourceVersion=0"));
  transport_.Answer(kAny, 200, ListOf("3", {Node("2")}));
  EXPECT_THAT(seen_, ElementsAre("2"));
  EXPECT_TRUE(WatchingFrom("3"));
}

TEST_F(ObjectWatchTest, ReadsNothingBehindAnError) {
  Begin();
  transport_.Stream(kAny, Line("ERROR", {{"code", 500}}) + Line("MODIFIED", Node("6")));
  EXPECT_TRUE(seen_.empty());
  timers_.RunNext();
  EXPECT_TRUE(WatchingFrom("5"));
}

TEST_F(ObjectWatchTest, GivesUpAStreamThatIsNone) {
  Begin();
  transport_.Stream(kAny, "garbage\n");
  EXPECT_EQ(transport_.open(), 0u);
  timers_.RunNext();
  EXPECT_TRUE(WatchingFrom("5"));
}

TEST_F(ObjectWatchTest, ListsFromTheServersCache) {
  EXPECT_THAT(transport_.Request(kAny).target, HasSubstr("&resourceVersion=0"));
}

TEST_F(ObjectWatchTest, KeepsItsVersionWhileTheServerIsAway) {
  Begin();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(WatchingFrom("5"));
    if (i % 2 == 0) {
      transport_.Answer(kAny, Unavailable("refused"));
    } else {
      transport_.Answer(kAny, 503, Json::object());
    }
    timers_.RunNext();
  }
  EXPECT_TRUE(WatchingFrom("5"));
}

// A server that was restored from a backup may know no version like ours.
TEST_F(ObjectWatchTest, ListsAnewAfterThreeRefusals) {
  Begin();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(WatchingFrom("5"));
    transport_.Answer(kAny, 504, {{"message", "Too large resource version"}});
    timers_.RunNext();
  }
  EXPECT_TRUE(Listing());
}

TEST_F(ObjectWatchTest, AsksForMetadataAloneWhereThatIsEnough) {
  EXPECT_THAT(transport_.Request(kAny).accept,
              AllOf(HasSubstr("as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
                    testing::EndsWith(",application/json")));
  Begin();
  EXPECT_THAT(transport_.Request(kAny).accept,
              HasSubstr("as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
}

TEST_F(ObjectWatchTest, TakesAllOfTheObjectFromAServerThatCannotDoThat) {
  transport_.Answer(kAny, 406, Json::object());
  timers_.RunNext();
  EXPECT_EQ(transport_.Request(kAny).accept, "application/json");
  Begin();
  EXPECT_EQ(transport_.Request(kAny).accept, "application/json");
}

TEST_F(ObjectWatchTest, BeginsAtSomeTimeOfTheStart) {
  int early = 0;
  constexpr int kWatches = 300;
  for (uint64_t seed = 0; seed < kWatches; ++seed) {
    FakeTransport transport;
    ManualClock timers;
    RetryGate gate({}, seed);
    ObjectWatch watch(transport, timers, gate, {.collection = kAny, .name = "n1"},
                      {.start_spread = seconds(60), .seed = seed}, [](const Json*) {});
    watch.Start();
    timers.Advance(seconds(20));
    early += transport.sent();
    timers.Advance(seconds(40));
    EXPECT_EQ(transport.sent(), 1);
  }
  EXPECT_THAT(early, AllOf(testing::Gt(kWatches / 4), testing::Lt(kWatches * 5 / 12)));
}

TEST_F(ObjectWatchTest, WaitsLongerAfterEachFailure) {
  milliseconds longest{};
  for (int i = 0; i < 80; ++i) {
    ASSERT_TRUE(transport_.Answer(kAny, Unavailable("down")));
    EXPECT_LE(timers_.NextWait(), milliseconds(i == 0 ? 100 : 1000));
    longest = std::max(longest, timers_.NextWait());
    timers_.RunNext();
  }
  EXPECT_GE(longest, milliseconds(800));
  EXPECT_TRUE(seen_.empty()) << "nothing is known, so nothing is said";
}

TEST_F(ObjectWatchTest, WaitsAsLongAsTheServerWants) {
  transport_.Answer(kAny, HttpReply{.status = 429, .body = "", .retry_after = seconds(7)});
  EXPECT_GE(timers_.NextWait(), seconds(7));
  EXPECT_LE(timers_.NextWait(), seconds(8)) << "with a random part, for not all agents at once";
}

TEST_F(ObjectWatchTest, NoServerSilencesItForMoreThanAMinute) {
  constexpr seconds kYear{31'536'000};
  transport_.Answer(kAny, HttpReply{.status = 503, .body = "", .retry_after = kYear});
  EXPECT_LE(timers_.NextWait(), seconds(61));
}

TEST_F(ObjectWatchTest, RetriesAListThatIsNone) {
  for (const Json& body : {Json("x"), Json::object(), Json{{"items", Json::array()}},
                           Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", 7}}}) {
    ASSERT_TRUE(transport_.Answer(kAny, 200, body));
    EXPECT_TRUE(seen_.empty());
    timers_.RunNext();
    EXPECT_TRUE(Listing());
  }
}

TEST_F(ObjectWatchTest, AsksForWatchesOfDifferentLength) {
  Begin();
  const std::string first = transport_.Request(kAny).target;
  EndWatch();
  timers_.RunNext();
  EXPECT_THAT(transport_.Request(kAny).target, Not(first));
  EXPECT_GT(transport_.Request(kAny).timeout, seconds(300));
}

// Whatever the server does in whatever order: once it works again, the last call has the server's
// last state.
TEST_F(ObjectWatchTest, ConvergesWhateverHappens) {
  constexpr unsigned kSeed = 4711;
  std::mt19937 random(kSeed);
  int version = 100;
  std::string truth = "-";
  for (int step = 0; step < 3000; ++step) {
    if (transport_.open() == 0) {
      ASSERT_GT(timers_.timers(), 0u) << "step " << step << ", seed " << kSeed;
      timers_.RunNext();
      continue;
    }
    if (Listing()) {
      const bool there = random() % 3 != 0;
      truth = there ? std::to_string(++version) : "-";
      if (random() % 4 == 0) {
        transport_.Answer(kAny, Unavailable("down"));
        continue;
      }
      std::vector<Json> items;
      if (there) items.push_back(Node(truth));
      transport_.Answer(kAny, 200, ListOf(std::to_string(++version), items));
      ASSERT_EQ(seen_.back(), truth) << "step " << step << ", seed " << kSeed;
      continue;
    }
    switch (random() % 7) {
      case 0:
        transport_.Answer(kAny, Unavailable("cut"));
        break;
      case 1:
        transport_.Stream(kAny, Line("ERROR", {{"code", 410}}));
        break;
      case 2:
        transport_.Stream(kAny, "{\"type\":\"MOD");
        transport_.Answer(kAny, Unavailable("cut within a line"));
        break;
      case 3:
        EndWatch();
        break;
      default:
        truth = random() % 3 == 0 ? "-" : std::to_string(++version);
        transport_.Stream(kAny, truth == "-" ? Line("DELETED", Node(std::to_string(++version)))
                                             : Line("MODIFIED", Node(truth)));
        ASSERT_EQ(seen_.back(), truth) << "step " << step << ", seed " << kSeed;
    }
  }
  EXPECT_GT(seen_.size(), 500u);
}

using Type = WatchEvent::Type;

const std::string kStream =
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
    "\r\n"
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n"
    "{\"type\":\"UNHEARD-OF\",\"object\":{}}\n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n"
    "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n";

std::vector<Type> Types(const std::vector<WatchEvent>& events) {
  std::vector<Type> types;
  types.reserve(events.size());
  for (const WatchEvent& event : events)
    types.push_back(event.type);
  return types;
}

TEST(WatchDecoderTest, ReadsEventsFromPiecesOfAnySize) {
  for (size_t size = 1; size <= kStream.size(); ++size) {
    WatchDecoder decoder;
    std::vector<WatchEvent> events;
    for (size_t at = 0; at < kStream.size(); at += size) {
      ASSERT_THAT(decoder.Feed(kStream.substr(at, size),
                               [&](WatchEvent event) {
                                 events.push_back(std::move(event));
                                 return true;
                               }),
                  IsOk());
    }
    ASSERT_THAT(Types(events),
                ElementsAre(Type::kAdded, Type::kModified, Type::kBookmark, Type::kError));
    EXPECT_EQ(TextAt(events[1].object, {"metadata", "name"}), "b");
    EXPECT_EQ(IntAt(events[3].object, {"code"}), 410);
  }
}

TEST(WatchDecoderTest, StopsWhereTheReceiverWants) {
  WatchDecoder decoder;
  int events = 0;
  EXPECT_THAT(decoder.Feed(kStream, [&](const WatchEvent&) { return ++events < 2; }), IsOk());
  EXPECT_EQ(events, 2);
}

TEST(WatchDecoderTest, RefusesWhatIsNoEvent) {
  const auto feed = [](const std::string& line) {
    return WatchDecoder().Feed(line + "\n", [](const WatchEvent&) { return true; });
  };
  for (const char* line :
       {"no json", "[]", "7", "{}", "{\"type\":\"ADDED\"}", "{\"type\":\"ADDED\",\"object\":[]}",
        "{\"type\":5,\"object\":{}}", "{\"object\":{}}", "{\"type\":\"ADDED\",\"object\":{}} x"}) {
    EXPECT_THAT(feed(line), Fails(StatusCode::kInvalidArgument, HasSubstr("a line"))) << line;
  }
}

TEST(WatchDecoderTest, NeverRepeatsTheTextOfABadLine) {
  const Status status =
      WatchDecoder().Feed("token: very-secret\n", [](const WatchEvent&) { return true; });
  EXPECT_THAT(std::string(Message(status)), testing::Not(HasSubstr("very-secret")));
}

TEST(WatchDecoderTest, HoldsNoMoreThanTheLimit) {
  WatchDecoder decoder(100);
  const auto ignore = [](const WatchEvent&) { return true; };
  EXPECT_THAT(decoder.Feed(std::string(100, ' '), ignore), IsOk());
  EXPECT_THAT(decoder.Feed(" ", ignore),
              Fails(StatusCode::kInvalidArgument, HasSubstr("more than 100 bytes")));
}

}  // namespace
}  // namespace resmgr::agent
