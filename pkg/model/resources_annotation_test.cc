// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/resources_annotation.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Requirements Parse(std::string_view json, std::string_view name = "web") {
  const auto parsed = ParseResourcesAnnotation(json, name);
  EXPECT_TRUE(parsed.ok()) << Describe(parsed.status());
  EXPECT_TRUE(parsed.ok() && parsed->has_value());
  return parsed.ok() ? parsed->value_or(Requirements{}) : Requirements{};
}

std::string Error(std::string_view json) {
  const Status status = ParseResourcesAnnotation(json, "web").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << json;
  return std::string(Message(status));
}

constexpr std::string_view kTwo = R"({
  "initContainers": {"setup": {"requests": {"cpu": "100m"}}},
  "containers": {"web": {"limits": {"cpu": "2", "memory": "1Gi", "example.com/dev": "1"},
                         "requests": {"cpu": "1500m", "memory": "512Mi"}}}})";

TEST(ResourcesAnnotationTest, ReadsRequestsAndLimits) {
  const Requirements web = Parse(kTwo);
  EXPECT_EQ(web.cpu_request.value, 1500);
  EXPECT_EQ(web.cpu_limit.value, 2000);
  EXPECT_EQ(web.memory_request.value, 512 << 20);
  EXPECT_EQ(web.memory_limit.value, 1 << 30);
}

TEST(ResourcesAnnotationTest, ReadsInitContainersToo) {
  EXPECT_EQ(Parse(kTwo, "setup").cpu_request.value, 100);
  EXPECT_EQ(Parse(kTwo, "setup").cpu_limit.value, 0);
}

TEST(ResourcesAnnotationTest, LimitAloneIsTheRequestToo) {
  const Requirements web = Parse(R"({"containers":{"web":{"limits":{"cpu":"2","memory":"1M"}}}})");
  EXPECT_EQ(web.cpu_request.value, 2000);
  EXPECT_EQ(web.memory_request.value, 1'000'000);
}

TEST(ResourcesAnnotationTest, NumbersAreQuantitiesToo) {
  EXPECT_EQ(Parse(R"({"containers":{"web":{"requests":{"cpu":1.5}}}})").cpu_request.value, 1500);
}

TEST(ResourcesAnnotationTest, SaysNothingAboutContainersItDoesNotKnow) {
  for (const std::string_view json :
       {R"({})", R"({"containers":null})", R"({"containers":{"other":{}}})"}) {
    const auto parsed = ParseResourcesAnnotation(json, "web");
    ASSERT_TRUE(parsed.ok()) << json;
    EXPECT_EQ(*parsed, std::nullopt) << json;
  }
}

TEST(ResourcesAnnotationTest, AContainerWithoutRequirementsHasNone) {
  for (const std::string_view json :
       {R"({"containers":{"web":{}}})", R"({"containers":{"web":{"limits":{},"requests":{}}}})",
        R"({"containers":{"web":{"limits":null,"requests":null}}})"}) {
    EXPECT_EQ(Parse(json), Requirements()) << json;
  }
}

TEST(ResourcesAnnotationTest, WrongTextIsAnErrorThatNamesThePlace) {
  EXPECT_EQ(Error("{"), "intel.com/resources is not JSON");
  EXPECT_EQ(Error(""), "intel.com/resources is not JSON");
  EXPECT_EQ(Error("[]"), "intel.com/resources must be a JSON object");
  EXPECT_EQ(Error(R"({"containers":[]})"), "intel.com/resources: containers must be a JSON object");
  EXPECT_EQ(Error(R"({"containers":{"web":{"limits":{"cpu":"2K"}}}})"),
            "intel.com/resources: containers.web.limits.cpu: \"2K\" is not a quantity: no unit is "
            "called \"K\"");
  EXPECT_THAT(Error(R"({"containers":{"web":{"limits":{"cpu":true}}}})"),
              HasSubstr("limits.cpu must be a quantity"));
  EXPECT_THAT(Error(R"({"containers":{"web":{"limits":[1]}}})"),
              HasSubstr("limits must be a JSON object"));
}

TEST(ResourcesAnnotationTest, HugeOrDeepTextIsRefusedCheaply) {
  EXPECT_THAT(Error(std::string(size_t{300} * 1024, ' ')), HasSubstr("bytes, more than"));
  const std::string deep(200'000, '[');
  EXPECT_EQ(Error(deep), "intel.com/resources is not JSON");
}

TEST(ResourcesAnnotationTest, ReadsHugePagesAndExtendedResources) {
  const auto others = ParseOtherResources(
      R"({"containers":{"web":{"limits":{"cpu":"2","hugepages-2Mi":"4Mi","example.com/dev":"3"},
                               "requests":{"memory":"1Gi","example.com/dev":"1","b.com/x":2}}}})",
      "web");
  ASSERT_TRUE(others.ok()) << Describe(others.status());
  EXPECT_THAT(*others, UnorderedElementsAre(Pair("hugepages-2Mi", 4 << 20),
                                            Pair("example.com/dev", 3), Pair("b.com/x", 2)));
  EXPECT_THAT(*ParseOtherResources(kTwo, "setup"), IsEmpty());
  EXPECT_THAT(*ParseOtherResources(kTwo, "unknown"), IsEmpty());
  EXPECT_EQ(ParseOtherResources(R"({"containers":{"web":{"limits":{"a.b/c":"x"}}}})", "web")
                .status()
                .code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseOtherResources(R"({"containers":{"web":{"limits":[1]}}})", "web").status().code(),
            StatusCode::kInvalidArgument);
}

std::string_view QosOfText(std::string_view json) {
  const auto qos = QosFromResourcesAnnotation(json);
  if (!qos.ok()) return "error";
  return qos->has_value() ? ToString(**qos) : "unknown";
}

TEST(ResourcesAnnotationTest, TellsTheClassAsKubernetesDoes) {
  constexpr std::string_view kFull = R"({"limits":{"cpu":"1","memory":"1Gi"}})";
  const auto of_two = [](std::string_view init, std::string_view main) {
    return std::string(QosOfText(
        fmt::format(R"({{"initContainers":{{"i":{}}},"containers":{{"m":{}}}}})", init, main)));
  };
  EXPECT_EQ(of_two(kFull, kFull), "Guaranteed");
  EXPECT_EQ(of_two(kFull, "{}"), "Burstable") << "every container counts";
  EXPECT_EQ(of_two("{}", "{}"), "BestEffort");
  EXPECT_EQ(of_two("{}", R"({"requests":{"memory":"1"}})"), "Burstable");
  EXPECT_EQ(of_two(kFull, R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}})"),
            "Burstable");
  EXPECT_EQ(of_two("{}", R"({"limits":{"example.com/dev":"1"}})"), "BestEffort");
  EXPECT_EQ(QosOfText("{}"), "unknown");
  EXPECT_EQ(QosOfText("["), "error");
  EXPECT_EQ(QosOfText(R"({"containers":[]})"), "error");
}

TEST(ResourcesAnnotationTest, TheCgroupWinsAndTheAnnotationFillsIn) {
  const StringMap guaranteed = {
      {"intel.com/resources", R"({"containers":{"m":{"limits":{"cpu":"1","memory":"1"}}}})"}};
  const auto qos = [](const char* cgroup_parent, const StringMap& annotations) {
    Pod pod;
    pod.annotations = annotations;
    SetQos(cgroup_parent, pod);
    return pod.qos;
  };
  EXPECT_EQ(qos("/kubepods/burstable/pod1", guaranteed), QosClass::kBurstable);
  EXPECT_EQ(qos("", guaranteed), QosClass::kGuaranteed);
  EXPECT_EQ(qos("/system.slice/x", guaranteed), QosClass::kGuaranteed);
  EXPECT_EQ(qos("", {}), QosClass::kBestEffort);
  EXPECT_EQ(qos("", {{"intel.com/resources", "nonsense"}}), QosClass::kBestEffort);
}

}  // namespace
}  // namespace resmgr
