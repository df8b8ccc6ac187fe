// SPDX-License-Identifier: Apache-2.0
#include "webhook/review_reader.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/pod_patch.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Read(const std::string& text) {
  const auto review = ReadReview(text);
  EXPECT_TRUE(review.ok()) << Describe(review.status());
  return review.value_or(json());
}

TEST(ReviewReaderTest, KeepsWhatThePatchDependsOnAndNothingElse) {
  json review = ReviewOf(EverydayPod(), "UPDATE");
  review["request"]["oldObject"] = review["request"]["object"];
  const json kept = Read(review.dump());
  EXPECT_LT(kept.dump().size(), review.dump().size() / 3);
  for (const char* object : {"object", "oldObject"}) {
    const json& whole = review["request"][object];
    const json& part = kept["request"][object];
    EXPECT_EQ(part["metadata"].size(), 1u);
    EXPECT_EQ(part["metadata"]["annotations"], whole["metadata"]["annotations"]);
    ASSERT_EQ(part["spec"]["containers"].size(), whole["spec"]["containers"].size());
    EXPECT_EQ(part["spec"]["containers"][0].size(), 2u);
    EXPECT_EQ(PatchOfPod(part, part)->patch, PatchOfPod(whole, whole)->patch);
  }
  for (const char* member : {"uid", "kind", "operation"}) {
    EXPECT_TRUE(kept["request"].contains(member)) << member;
  }
}

TEST(ReviewReaderTest, KeepsTheTypesOfWhatIsWrong) {
  EXPECT_EQ(Read("7"), json(7));
  EXPECT_EQ(Read(R"({"request":"x","kind":[1,{"a":2}],"apiVersion":{"b":3}})"),
            json::parse(R"({"request":"x","kind":[1,{}],"apiVersion":{}})"));
}

TEST(ReviewReaderTest, TheLastOfRepeatedMembersCounts) {
  EXPECT_EQ(Read(R"({"request":{"uid":"a","operation":"b"},"request":{"uid":"c"}})"),
            json::parse(R"({"request":{"uid":"c"}})"));
  EXPECT_EQ(Read(R"({"request":{"uid":"a"},"other":{"uid":"d"},"request":null})"),
            json::parse(R"({"request":null})"));
}

TEST(ReviewReaderTest, LeavesOutWhatIsNestedDeeply) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const json kept = Read(R"({"request":{"object":{"metadata":{"annotations":)" + deep +
                         R"(},"spec":{"containers":[{"name":"c"}]}}}})");
  EXPECT_LT(kept.dump().size(), 200u);
  EXPECT_EQ(kept["request"]["object"]["spec"]["containers"][0]["name"], "c");
}

TEST(ReviewReaderTest, RefusesWhatWouldTakeTooMuch) {
  std::string text = R"({"request":{"object":{"metadata":{"annotations":{)";
  for (int i = 0; i < 200'000; ++i)
    text += "\"" + std::to_string(i) + "\":\"\",";
  text += R"("":""}}}}})";
  const Status status = ReadReview(text).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("more than 24 MiB"));
}

TEST(ReviewReaderTest, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "{}}", "[1,]", "{\"a\":}", "\"\xff\""})
    EXPECT_EQ(ReadReview(text).status().code(), StatusCode::kInvalidArgument) << text;
}

}  // namespace
}  // namespace resmgr::webhook
