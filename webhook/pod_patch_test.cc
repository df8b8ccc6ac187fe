// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_patch.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/quantity.h"
#include "pkg/model/resources_annotation.h"
#include "test/support/sanitizer.h"
#include "test/support/status_matchers.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using test::Must;
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
  const auto patch = Must(PatchOfPod(pod, pod));
  EXPECT_EQ(patch.patch, "");
  EXPECT_THAT(patch.warning, HasSubstr("262145 bytes, more than 262144"));
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
    const auto patch = Must(PatchOfPod(pod, pod));
    EXPECT_NE(patch.warning, "");
    const json patched = pod.patch(json::parse(patch.patch));
    EXPECT_FALSE(patched["metadata"]["annotations"].contains(kKey));
    EXPECT_TRUE(patched["metadata"]["annotations"].contains("large"));
  }
}

TEST(PodPatchTest, TheStoredSpecCounts) {
  json forged = EverydayPod();
  forged["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "64";
  const auto patch = Must(PatchOfPod(forged, EverydayPod()));
  EXPECT_EQ(patch.patch, Patch(EverydayPod()));
}

TEST(PodPatchTest, RefusesWhatIsNoPod) {
  for (const json& pod : {json(), json(3), json::array(), json::object(), json{{"metadata", "x"}},
                          json{{"metadata", {{"annotations", "x"}}}}}) {
    EXPECT_EQ(PatchOfPod(pod, pod).status().code(), StatusCode::kInvalidArgument) << pod;
  }
}

std::string Annotation(const json& pod) {
  const auto text = ResourcesOfPod(pod);
  EXPECT_TRUE(text.ok()) << Describe(text.status());
  return text.value_or("");
}

json PodWith(const json& resources) {
  return {{"metadata", {{"name", "p"}}},
          {"spec", {{"containers", json::array({{{"name", "c"}, {"resources", resources}}})}}}};
}

TEST(PodResourcesTest, WritesBothMapsAlways) {
  EXPECT_EQ(Annotation({{"spec", json::object()}}), R"({"initContainers":{},"containers":{}})");
  EXPECT_EQ(Annotation({{"spec", {{"containers", nullptr}}}}),
            R"({"initContainers":{},"containers":{}})");
}

TEST(PodResourcesTest, AContainerWithoutRequirementsIsThereToo) {
  for (const json& resources : {json(), json::object(), json{{"limits", nullptr}},
                                json{{"limits", json::object()}, {"requests", json::object()}}}) {
    EXPECT_EQ(Annotation(PodWith(resources)), R"({"initContainers":{},"containers":{"c":{}}})");
  }
}

TEST(PodResourcesTest, WritesEveryResourceOfAnEverydayPod) {
  EXPECT_EQ(Annotation(EverydayPod()),
            R"({"initContainers":{)"
            R"("migrate":{"limits":{"memory":"64Mi"},"requests":{"cpu":"100m"}},)"
            R"("proxy":{"limits":{"memory":"64Mi"},"requests":{"cpu":"100m"}}},)"
            R"("containers":{"exporter":{},)"
            R"("server":{"limits":{"cpu":"2","example.com/nic":"1","memory":"4Gi"},)"
            R"("requests":{"cpu":"2","example.com/nic":"1","memory":"4Gi"}}}})");
}

TEST(PodResourcesTest, QuantitiesBecomeCanonical) {
  const json pod = PodWith({{"limits", {{"cpu", 0.5}, {"memory", "1024Mi"}, {"x/y", 3}}},
                            {"requests", {{"cpu", "0.250"}, {"hugepages-2Mi", "2048Ki"}}}});
  EXPECT_EQ(Annotation(pod), R"({"initContainers":{},"containers":{"c":{)"
                             R"("limits":{"cpu":"500m","memory":"1Gi","x/y":"3"},)"
                             R"("requests":{"cpu":"250m","hugepages-2Mi":"2Mi"}}}})");
}

TEST(PodResourcesTest, EphemeralContainersAndThePodAsAWholeAreLeftOut) {
  json pod = PodWith({{"requests", {{"cpu", "1"}}}});
  pod["spec"]["resources"] = {{"limits", {{"cpu", "4"}}}};
  pod["spec"]["ephemeralContainers"] = json::array({{{"name", "debugger"}}});
  pod["spec"]["overhead"] = {{"cpu", "250m"}};
  EXPECT_EQ(Annotation(pod),
            R"({"initContainers":{},"containers":{"c":{"requests":{"cpu":"1"}}}})");
}

TEST(PodResourcesTest, OtherMembersOfTheRequirementsAreLeftOut) {
  const json pod = PodWith({{"claims", json::array({{{"name", "gpu"}}})}});
  EXPECT_EQ(Annotation(pod), R"({"initContainers":{},"containers":{"c":{}}})");
}

TEST(PodResourcesTest, DoesNotDependOnTheOrderOfContainers) {
  json pod = EverydayPod();
  const std::string before = Annotation(pod);
  auto& containers = pod["spec"]["containers"];
  std::swap(containers[0], containers[1]);
  EXPECT_EQ(Annotation(pod), before);
}

TEST(PodResourcesTest, ErrorsNameTheField) {
  const struct {
    json pod;
    const char* part;
  } kCases[] = {
      {json::array(), "not an object"},
      {json::object(), "no spec"},
      {{{"spec", 3}}, "\"spec\" must be an object"},
      {{{"spec", {{"containers", "c"}}}}, "spec.containers must be a list"},
      {{{"spec", {{"initContainers", json::array({3})}}}}, "spec.initContainers"},
      {{{"spec", {{"containers", json::array({json::object()})}}}}, "has no name"},
      {PodWith({{"limits", {{"cpu", "1K"}}}}), "spec.containers: c: limits.cpu: \"1K\""},
      {PodWith({{"limits", {{"cpu", "-1"}}}}), "limits.cpu: \"-1\""},
      {PodWith({{"requests", {{"cpu", true}}}}), "requests.cpu: it must be a quantity"},
      {PodWith({{"requests", {{"cpu", json::object()}}}}), "requests.cpu: it must be a quantity"},
      {PodWith({{"requests", 1}}), "\"requests\" must be an object"},
      {PodWith("all"), "\"resources\" must be an object"},
  };
  for (const auto& test : kCases) {
    const Status status = ResourcesOfPod(test.pod).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << test.pod;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(test.part)) << test.pod;
  }
}

// The daemon reads the pod's own values, which do not follow from the cgroup's shares.
TEST(PodResourcesTest, TheDaemonReadsEveryMilliCpuValueBack) {
  constexpr int64_t kStep = test::kSanitized ? 17 : 1;
  for (int64_t milli = 1; milli <= 64'000; milli += kStep) {
    const std::string canonical = FormatMilliCpu(MilliCpu{milli});
    const json pod = PodWith({{"limits", {{"cpu", fmt::format("{}m", milli + 1)}}},
                              {"requests", {{"cpu", canonical}, {"memory", "1Mi"}}}});
    const auto text = ResourcesOfPod(pod);
    ASSERT_TRUE(text.ok()) << milli;
    const auto read = ParseResourcesAnnotation(*text, "c");
    ASSERT_TRUE(read.ok() && read->has_value()) << milli;
    ASSERT_EQ((*read)->cpu_request.value, milli);
    ASSERT_EQ((*read)->cpu_limit.value, milli + 1);
    ASSERT_EQ((*read)->memory_request.value, 1 << 20);
    ASSERT_EQ((*read)->memory_limit.value, 0);
  }
}

TEST(PodResourcesTest, TheDaemonFindsInitContainersAndSidecars) {
  const std::string text = Annotation(EverydayPod());
  for (const char* name : {"migrate", "proxy"}) {
    const auto read = ParseResourcesAnnotation(text, name);
    ASSERT_TRUE(read.ok() && read->has_value()) << name;
    EXPECT_EQ((*read)->cpu_request.value, 100);
    EXPECT_EQ((*read)->memory_limit.value, 64 << 20);
  }
  const auto exporter = ParseResourcesAnnotation(text, "exporter");
  ASSERT_TRUE(exporter.ok() && exporter->has_value());
  EXPECT_EQ(**exporter, Requirements{}) << "it has no resources of its own";
}

}  // namespace
}  // namespace resmgr::webhook
