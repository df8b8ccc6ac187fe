// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_resources.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/kube/quantity.h"
#include "pkg/model/resources_annotation.h"
#include "test/support/sanitizer.h"
#include "webhook/testing/reviews.h"

namespace resmgr::webhook {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

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
