// SPDX-License-Identifier: Apache-2.0
#include "agent/watch_decoder.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::Fails;
using test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
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
