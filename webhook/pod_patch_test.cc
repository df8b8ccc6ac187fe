// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_patch.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/model/resources_annotation.h"
#include "webhook/pod_resources.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kKey(kResourcesAnnotation);

std::string Patch(const json& pod) {
  const auto patch = PatchOfPod(pod, pod);
  EXPECT_TRUE(patch.ok()) << Describe(patch.status());
  if (!patch.ok()) return "error";
  EXPECT_EQ(patch->warning, "");
  return patch->patch;
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
  const auto patch = PatchOfPod(pod, pod);
  ASSERT_TRUE(patch.ok());
  EXPECT_EQ(patch->patch, "");
  EXPECT_THAT(patch->warning, HasSubstr("262145 bytes, more than 262144"));
}

// Otherwise preventing the webhook from writing would be enough to forge a value.
TEST(PodPatchTest, RemovesAnAnnotationThatItCannotReplace) {
  json padded = SmallPod();
  padded["metadata"]["annotations"] = {
      {"large", std::string(262'100, 'x')},
      {kKey, R"({"containers":{"c":{"limits":{"cpu":"64"}}},"initContainers":{}})"}};
  json unreadable = padded;
  unreadable["metadata"]["annotations"]["large"] = "small";
  unreadable["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "much"}}}};
  for (const json& pod : {padded, unreadable}) {
    const auto patch = PatchOfPod(pod, pod);
    ASSERT_TRUE(patch.ok());
    EXPECT_NE(patch->warning, "");
    const json patched = pod.patch(json::parse(patch->patch));
    EXPECT_FALSE(patched["metadata"]["annotations"].contains(kKey));
    EXPECT_TRUE(patched["metadata"]["annotations"].contains("large"));
  }
}

TEST(PodPatchTest, TheStoredSpecCounts) {
  json forged = EverydayPod();
  forged["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "64";
  const auto patch = PatchOfPod(forged, EverydayPod());
  ASSERT_TRUE(patch.ok());
  EXPECT_EQ(patch->patch, Patch(EverydayPod()));
}

TEST(PodPatchTest, RefusesWhatIsNoPod) {
  for (const json& pod : {json(), json(3), json::array(), json::object(), json{{"metadata", "x"}},
                          json{{"metadata", {{"annotations", "x"}}}}}) {
    EXPECT_EQ(PatchOfPod(pod, pod).status().code(), StatusCode::kInvalidArgument) << pod;
  }
}

}  // namespace
}  // namespace resmgr::webhook
