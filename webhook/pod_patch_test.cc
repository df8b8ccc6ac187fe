// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_patch.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/resources_annotation.h"
#include "webhook/pod_resources.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kKey(kResourcesAnnotation);

std::string Patch(const json& pod) {
  const auto patch = PatchOfPod(pod);
  EXPECT_TRUE(patch.ok()) << Describe(patch.status());
  return patch.value_or("error");
}

json SmallPod() {
  return {{"metadata", {{"name", "p"}}},
          {"spec", {{"containers", json::array({{{"name", "c"}}})}}}};
}

TEST(PodPatchTest, MakesTheAnnotationsWhereThereAreNone) {
  constexpr const char* kValue = R"({"initContainers":{},"containers":{"c":{}}})";
  const json expected = {
      {{"op", "add"}, {"path", "/metadata/annotations"}, {"value", json::object()}},
      {{"op", "add"}, {"path", "/metadata/annotations/intel.com~1resources"}, {"value", kValue}}};
  json pod = SmallPod();
  EXPECT_EQ(json::parse(Patch(pod)), expected);
  pod["metadata"]["annotations"] = nullptr;
  EXPECT_EQ(json::parse(Patch(pod)), expected);
}

TEST(PodPatchTest, KeepsOtherAnnotations) {
  const json pod = EverydayPod();
  const json patched = pod.patch(json::parse(Patch(pod)));
  json expected = pod;
  expected["metadata"]["annotations"][kKey] = ResourcesOfPod(pod).value_or("");
  EXPECT_EQ(patched, expected);
  EXPECT_EQ(patched["metadata"]["annotations"].size(), 2u);
}

TEST(PodPatchTest, IsEmptyForAPodThatWasPatched) {
  for (const json& pod : {SmallPod(), EverydayPod()}) {
    const json patched = pod.patch(json::parse(Patch(pod)));
    EXPECT_EQ(Patch(patched), "");
  }
}

TEST(PodPatchTest, IsEmptyWhenTheAnnotationSaysTheSameInOtherWords) {
  json pod = SmallPod();
  pod["metadata"]["annotations"][kKey] = "{\"containers\": {\"c\": {}},\n \"initContainers\": {}}";
  EXPECT_EQ(Patch(pod), "");
}

TEST(PodPatchTest, ReplacesAnAnnotationThatSaysSomethingElse) {
  for (const json& other : {json(""), json("{}"), json("not JSON"), json(7), json::array(),
                            json(R"({"containers":{"c":{"limits":{"cpu":"64"}}}})")}) {
    json pod = SmallPod();
    pod["metadata"]["annotations"] = {{kKey, other}, {"mine", "kept"}};
    const json patched = pod.patch(json::parse(Patch(pod)));
    EXPECT_EQ(patched["metadata"]["annotations"][kKey],
              R"({"initContainers":{},"containers":{"c":{}}})");
    EXPECT_EQ(patched["metadata"]["annotations"]["mine"], "kept");
  }
}

TEST(PodPatchTest, FollowsAResize) {
  json pod = EverydayPod();
  pod = pod.patch(json::parse(Patch(pod)));
  pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3";
  const json patched = pod.patch(json::parse(Patch(pod)));
  const std::string text = patched["metadata"]["annotations"][kKey];
  EXPECT_THAT(text, HasSubstr(R"("requests":{"cpu":"3",)"));
}

TEST(PodPatchTest, LeavesMirrorPodsAlone) {
  json pod = SmallPod();
  pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "0f1e2d3c";
  EXPECT_EQ(Patch(pod), "");
}

TEST(PodPatchTest, NeverMakesThePodTooLargeForKubernetes) {
  json pod = SmallPod();
  const size_t ours = kKey.size() + ResourcesOfPod(pod)->size();
  pod["metadata"]["annotations"] = {{"large", std::string(262'144 - 5 - ours, 'x')}};
  EXPECT_NE(Patch(pod), "") << "exactly at the limit";
  pod["metadata"]["annotations"] = {{"large", std::string(262'145 - 5 - ours, 'x')}};
  const Status status = PatchOfPod(pod).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("262145 bytes, more than 262144"));
}

TEST(PodPatchTest, RefusesWhatIsNoPod) {
  for (const json& pod : {json(), json(3), json::array(), json::object(), json{{"metadata", "x"}},
                          json{{"metadata", {{"annotations", "x"}}}}}) {
    EXPECT_EQ(PatchOfPod(pod).status().code(), StatusCode::kInvalidArgument) << pod;
  }
}

}  // namespace
}  // namespace resmgr::webhook
