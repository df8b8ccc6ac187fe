// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "test/support/sanitizer.h"
#include "webhook/review.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;

constexpr int kReviews = test::kSanitized ? 600 : 3000;
constexpr uint32_t kSeed = 20'261'121;

// Bytes with a meaning in JSON are more frequent than at random.
char AnyByte(std::mt19937& random) {
  constexpr std::string_view kTelling = "{}[],:\"\\0-9eE.nulltruefalse \n";
  if (random() % 2 == 0) return static_cast<char>(random());
  return kTelling[random() % kTelling.size()];
}

std::string Mutated(std::string text, std::mt19937& random) {
  const size_t changes = random() % 6;
  for (size_t i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = AnyByte(random);
        break;
      case 1:
        text.insert(at, 1, AnyByte(random));
        break;
      case 2:
        text.erase(at, random() % 8);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), random() % 64));
        break;
    }
  }
  if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
  return text;
}

// Replaces one value somewhere in the tree, so that the text stays JSON.
void Disturb(json& value, std::mt19937& random) {
  if (value.is_structured() && !value.empty() && random() % 8 != 0) {
    auto chosen = value.begin();
    std::advance(chosen, static_cast<int64_t>(random() % value.size()));
    return Disturb(*chosen, random);
  }
  const json others[] = {nullptr,
                         0,
                         -1,
                         1e300,
                         "",
                         "1e999",
                         "-5",
                         true,
                         json::array({nullptr}),
                         json::object(),
                         json{{"limits", 3}},
                         std::string(5000, 'n')};
  value = others[random() % std::size(others)];
}

// The reply allows the review or refuses the request.
void ExpectValid(const HttpReply& reply, const std::string& text) {
  if (reply.status == 400) {
    ASSERT_FALSE(reply.body.empty());
    return;
  }
  ASSERT_EQ(reply.status, 200u) << text;
  const json answer = json::parse(reply.body, nullptr, false);
  ASSERT_FALSE(answer.is_discarded()) << text;
  ASSERT_EQ(answer["kind"], "AdmissionReview");
  ASSERT_EQ(answer["response"]["allowed"], true) << text;
  ASSERT_FALSE(answer["response"]["uid"].get<std::string>().empty()) << text;
  const json patch = PatchIn(answer);
  if (patch.is_null()) return;
  // The patch applies to the pod that was sent.
  const json object = json::parse(text)["request"]["object"];
  ASSERT_NO_THROW(object.patch(patch)) << text;
}

TEST(HostileReviewsTest, MutatedAndTruncatedReviewsGetAValidAnswer) {
  std::mt19937 random(kSeed);
  RecordProperty("seed", static_cast<int>(kSeed));
  int answered = 0;
  for (int i = 0; i < kReviews; ++i) {
    json review = ReviewOf(EverydayPod(), i % 2 == 0 ? "CREATE" : "UPDATE");
    if (i % 3 == 0) Disturb(review, random);
    std::string text = review.dump();
    if (i % 3 != 0 || random() % 4 == 0) text = Mutated(std::move(text), random);
    const HttpReply reply = ReviewAdmission(text);
    ExpectValid(reply, text);
    if (HasFatalFailure()) FAIL() << "review " << i << " of seed " << kSeed;
    answered += reply.status == 200 ? 1 : 0;
  }
  // Both outcomes were seen.
  EXPECT_GT(answered, kReviews / 10);
  EXPECT_LT(answered, kReviews);
}

TEST(HostileReviewsTest, DeepNestingDoesNoHarm) {
  constexpr size_t kDepth = 1'000'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_EQ(ReviewAdmission(deep).status, 400u);
  std::string text = ReviewOf("@").dump();
  text.replace(text.find("\"@\""), 3, deep);
  ExpectValid(ReviewAdmission(text), "");
  std::string pod = EverydayPod().dump();
  const std::string quantity = "\"cpu\":\"2\"";
  pod.replace(pod.find(quantity), quantity.size(), "\"cpu\":" + deep);
  text = ReviewOf("@").dump();
  text.replace(text.find("\"@\""), 3, pod);
  EXPECT_EQ(ReviewAdmission(text).status, 200u);
}

}  // namespace
}  // namespace resmgr::webhook
