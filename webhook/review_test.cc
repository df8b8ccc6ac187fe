// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Answer(const json& review) {
  const HttpReply reply = ReviewAdmission(review.dump());
  EXPECT_EQ(reply.status, 200u) << reply.body;
  EXPECT_EQ(reply.content_type, "application/json");
  const json answer = json::parse(reply.body);
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

}  // namespace
}  // namespace resmgr::webhook
