// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <cstdint>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sanitizer.h"
#include "webhook/pod_patch.h"
#include "webhook/routes.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Answer(const json& review) {
  const HttpReply reply = ReviewAdmission(review.dump());
  EXPECT_EQ(reply.status, 200u) << reply.body;
  EXPECT_EQ(reply.content_type, "application/json");
  json answer = json::parse(reply.body);
  EXPECT_EQ(answer["response"]["allowed"], true);
  EXPECT_EQ(answer["response"]["uid"], review["request"]["uid"]);
  EXPECT_EQ(answer["apiVersion"], review["apiVersion"]);
  return answer;
}

TEST(ReviewTest, PatchesPodsThatAreCreatedOrUpdated) {
  for (const char* version : {"v1", "v1beta1"}) {
    for (const char* operation : {"CREATE", "UPDATE"}) {
      const json patch = PatchIn(Answer(ReviewOf(EverydayPod(), operation, version)));
      ASSERT_EQ(patch.size(), 1u) << version << operation;
      EXPECT_EQ(patch[0]["path"], "/metadata/annotations/intel.com~1resources");
    }
  }
}

TEST(ReviewTest, AsksForNothingTheSecondTime) {
  const json pod = EverydayPod();
  const json patched = pod.patch(PatchIn(Answer(ReviewOf(pod))));
  EXPECT_TRUE(PatchIn(Answer(ReviewOf(patched, "UPDATE"))).is_null());
}

// The API server takes annotations from a new status, but not the spec.
TEST(ReviewTest, AnAnnotationCannotBeForgedByTheStatus) {
  const json pod = EverydayPod();
  const json stored = pod.patch(PatchIn(Answer(ReviewOf(pod))));
  json forged = stored;
  forged["metadata"]["annotations"]["intel.com/resources"] =
      R"({"containers":{"server":{"limits":{"cpu":"64"}}},"initContainers":{}})";
  forged["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "64";
  json review = ReviewOf(forged, "UPDATE");
  review["request"]["subResource"] = "status";
  review["request"]["oldObject"] = stored;
  const json patched = forged.patch(PatchIn(Answer(review)));
  EXPECT_EQ(patched["metadata"]["annotations"], stored["metadata"]["annotations"]);
  review["request"]["object"] = stored;
  EXPECT_TRUE(PatchIn(Answer(review)).is_null()) << "an ordinary change of the status";
}

TEST(ReviewTest, AllowsEverythingElseAsItIs) {
  const auto changed = [](const char* pointer, json value) {
    json review = ReviewOf(EverydayPod());
    review[json::json_pointer(pointer)] = std::move(value);
    return review;
  };
  for (const json& review :
       {changed("/request/operation", "DELETE"), changed("/request/operation", "CONNECT"),
        changed("/request/operation", nullptr), changed("/request/kind/kind", "Deployment"),
        changed("/request/kind/group", "metrics.k8s.io"), changed("/request/subResource", "resize"),
        changed("/request/subResource", "ephemeralcontainers")}) {
    const json answer = Answer(review);
    EXPECT_EQ(answer["response"].size(), 2u) << answer;
  }
}

TEST(ReviewTest, AllowsPodsThatItCannotReadAndSaysWhy) {
  json pod = EverydayPod();
  pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "much";
  for (const json& unreadable : {pod, json(), json("pod")}) {
    const json response = Answer(ReviewOf(unreadable))["response"];
    EXPECT_FALSE(response.contains("patch"));
    EXPECT_THAT(response["warnings"][0].get<std::string>(),
                HasSubstr("no annotation intel.com/resources: "));
  }
}

TEST(ReviewTest, WhatIsNoReviewIsABadRequest) {
  const HttpReply reply = ReviewAdmission("{}");
  EXPECT_EQ(reply.status, 400u);
  EXPECT_EQ(reply.content_type, "text/plain");
  EXPECT_THAT(reply.body, HasSubstr("not AdmissionReview"));
}

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
  constexpr size_t kDepth = test::kSanitized ? 200'000 : 1'000'000;
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

unsigned StatusOf(HttpRequest request) {
  return Serve(request).status;
}

TEST(RoutesTest, TakesReviewsAtTwoPaths) {
  const std::string body = ReviewOf(EverydayPod()).dump();
  for (const char* target : {"/", "/mutate", "/mutate?timeout=2s"}) {
    for (const char* type : {"application/json", "Application/JSON; charset=utf-8"}) {
      EXPECT_EQ(StatusOf({"POST", target, type, body}), 200u) << target << type;
    }
  }
}

TEST(RoutesTest, IsHealthy) {
  const HttpReply reply = Serve({.method = "GET", .target = "/healthz"});
  EXPECT_EQ(reply.status, 200u);
  EXPECT_EQ(reply.body, "ok\n");
  EXPECT_EQ(StatusOf({.method = "HEAD", .target = "/healthz"}), 200u);
}

TEST(RoutesTest, RefusesTheRest) {
  EXPECT_EQ(StatusOf({"POST", "/validate", "application/json", "{}"}), 404u);
  EXPECT_EQ(StatusOf({"POST", "", "application/json", "{}"}), 404u);
  EXPECT_EQ(StatusOf({"GET", "/mutate", "", ""}), 405u);
  EXPECT_EQ(StatusOf({"POST", "/healthz", "application/json", "{}"}), 405u);
  EXPECT_EQ(StatusOf({"POST", "/mutate", "application/vnd.kubernetes.protobuf", "{}"}), 415u);
  EXPECT_EQ(StatusOf({"POST", "/mutate", "", "{}"}), 415u);
  EXPECT_EQ(StatusOf({"POST", "/mutate", "application/json", ""}), 400u);
}

TEST(AdmissionReviewTest, ReadsBothVersions) {
  for (const std::string version : {"v1", "v1beta1"}) {
    const auto request = DecodeAdmissionReview(ReviewOf(EverydayPod(), "UPDATE", version).dump());
    ASSERT_TRUE(request.ok()) << Describe(request.status());
    EXPECT_EQ(request->api_version, "admission.k8s.io/" + version);
    EXPECT_EQ(request->uid, "705ab4f5-6393-11e8-b7cc-42010a800002");
    EXPECT_EQ(request->group, "");
    EXPECT_EQ(request->kind, "Pod");
    EXPECT_EQ(request->sub_resource, "");
    EXPECT_EQ(request->operation, "UPDATE");
    EXPECT_EQ(request->object["metadata"]["annotations"], EverydayPod()["metadata"]["annotations"]);
    EXPECT_EQ(request->object["spec"]["containers"].size(), 2u);
  }
}

TEST(AdmissionReviewTest, AnswersInTheVersionOfTheQuestion) {
  AdmissionRequest request;
  request.api_version = "admission.k8s.io/v1beta1";
  request.uid = "u\"1";
  EXPECT_EQ(json::parse(EncodeAdmissionReview(request, {})),
            (json{{"apiVersion", "admission.k8s.io/v1beta1"},
                  {"kind", "AdmissionReview"},
                  {"response", {{"uid", "u\"1"}, {"allowed", true}}}}));
}

TEST(AdmissionReviewTest, PatchesAreBase64) {
  AdmissionRequest request;
  request.api_version = "admission.k8s.io/v1";
  request.uid = "1";
  const json response =
      json::parse(EncodeAdmissionReview(request, {.patch = "[{}]", .warning = "look"}))["response"];
  EXPECT_EQ(response, (json{{"uid", "1"},
                            {"allowed", true},
                            {"patchType", "JSONPatch"},
                            {"patch", "W3t9XQ=="},
                            {"warnings", {"look"}}}));
}

TEST(AdmissionReviewTest, AWarningThatIsNotUtf8DoesNoHarm) {
  AdmissionRequest request;
  request.uid = "1";
  const std::string text = EncodeAdmissionReview(request, {.patch = {}, .warning = "half \xc3"});
  EXPECT_THAT(json::parse(text)["response"]["warnings"][0].get<std::string>(), HasSubstr("half "));
}

TEST(AdmissionReviewTest, RefusesWhatIsNoReview) {
  const json review = ReviewOf(EverydayPod());
  const auto changed = [&review](const char* pointer, json value) {
    json copy = review;
    copy[json::json_pointer(pointer)] = std::move(value);
    return copy.dump();
  };
  const struct {
    std::string text;
    const char* part;
  } kCases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {"\"\xff\"", "not JSON"},
      {"[]", "not a JSON object"},
      {"{}", "kind is \"\""},
      {changed("/kind", "Pod"), "kind is \"Pod\""},
      {changed("/apiVersion", "admission.k8s.io/v2"), "\"admission.k8s.io/v2\" is not one of"},
      {changed("/apiVersion", nullptr), "apiVersion"},
      {changed("/request", nullptr), "no request"},
      {changed("/request", json::array()), "no request"},
      {changed("/request/uid", ""), "request: it has no uid"},
      {changed("/request/uid", 7), "\"uid\" must be a string"},
      {changed("/request/kind", nullptr), "request: it has no kind"},
      {changed("/request/kind", "Pod"), "\"kind\" must be an object"},
      {changed("/request/operation", 1), "\"operation\" must be a string"},
  };
  for (const auto& test : kCases) {
    const Status status = DecodeAdmissionReview(test.text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << test.text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(test.part)) << test.text;
  }
}

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
