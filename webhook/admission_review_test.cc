// SPDX-License-Identifier: Apache-2.0
#include "webhook/admission_review.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace resmgr::webhook
