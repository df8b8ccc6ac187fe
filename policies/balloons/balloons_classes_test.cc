// SPDX-License-Identifier: Apache-2.0
// Classes that balloon types name.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "policies/balloons/balloons_options.h"
#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;
using testing::AllOf;
using testing::HasSubstr;

const Zone* FindZone(const std::vector<Zone>& zones, std::string_view name) {
  const auto found = std::ranges::find(zones, name, &Zone::name);
  return found == zones.end() ? nullptr : &*found;
}

std::string SectionError(std::string_view text) {
  const ConfigNode section = ParseYaml(text, "a.yaml").value();
  return std::string(Message(ReadBalloonsOptions(&section).status()));
}

TEST(BalloonsClassesTest, AContainerHasThoseOfItsBalloonsType) {
  BalloonsNode node(
      "{idleCPUClass: quiet, balloonTypes: [{name: x, namespaces: [n], cpuClass: turbo, rdtClass: "
      "gold, blockioClass: fast, schedulingClass: rt, memoryClass: kept, irqMode: isolate, "
      "irqClaim: [ttyS0, rtc0]}]}");
  const ContainerKey a = *node.Run("a", {.namespace_name = "n", .request = 2000});
  const ContainerKey other = *node.Run("b", {.request = 100});
  const ClassNames expected = {
      {"cpu", "turbo"},   {"rdt", "gold"},    {"blockio", "fast"},         {"scheduling", "rt"},
      {"memory", "kept"}, {"irq", "isolate"}, {"irq-claim", "ttyS0\nrtc0"}};
  EXPECT_EQ(node.policy().ClassesOf(a), expected);
  EXPECT_EQ(node.policy().ClassesOf(other), ClassNames());
  const std::vector<Zone> zones = node.policy().Zones(node.snapshot());
  ASSERT_NE(FindZone(zones, "x[0]"), nullptr);
  EXPECT_EQ(FindZone(zones, "x[0]")->classes, expected);
  ASSERT_NE(FindZone(zones, "idle"), nullptr);
  EXPECT_EQ(FindZone(zones, "idle")->classes, (ClassNames{{"cpu", "quiet"}}));
}

TEST(BalloonsClassesTest, CpusInNoBalloonHaveTheClassDefaultIfNoOtherIsNamed) {
  BalloonsNode node("balloonTypes: [{name: x, namespaces: [n]}]");
  const std::vector<Zone> zones = node.policy().Zones(node.snapshot());
  ASSERT_NE(FindZone(zones, "idle"), nullptr);
  EXPECT_EQ(FindZone(zones, "idle")->classes, (ClassNames{{"cpu", "default"}}));
}

TEST(BalloonsClassesTest, CpusOfComponentsHaveThoseOfTheComponentsTypes) {
  BalloonsNode node(
      "balloonTypes: [{name: fast, cpuClass: turbo, minCPUs: 1}, {name: plain, minCPUs: 1}, "
      "{name: both, namespaces: [n], components: [{balloonType: fast}, {balloonType: plain}]}]");
  ASSERT_TRUE(node.Run("a", {.namespace_name = "n", .request = 2000}).ok());
  const std::vector<Zone> zones = node.policy().Zones(node.snapshot());
  const Zone* const part = FindZone(zones, "both[0]/fast.0");
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part->classes, (ClassNames{{"cpu", "turbo"}}));
  EXPECT_TRUE(part->cpus.IsSubsetOf(FindZone(zones, "both[0]")->cpus));
  EXPECT_EQ(FindZone(zones, "both[0]/plain.1"), nullptr);
}

TEST(BalloonsClassesTest, CpusOfComponentsStayThoseOfTheirClassAtARestart) {
  BalloonsNode node(
      "balloonTypes: [{name: fast, cpuClass: turbo, minCPUs: 1}, {name: plain, minCPUs: 1}, "
      "{name: both, namespaces: [n], components: [{balloonType: fast}, {balloonType: plain}]}]");
  const ContainerKey a = *node.Run("a", {.namespace_name = "n", .request = 2000});
  ASSERT_TRUE(node.Resize(a, 4000).ok());
  const auto fast = [&node] {
    return FindZone(node.policy().Zones(node.snapshot()), "both[0]/fast.0")->cpus.ToString();
  };
  const std::string before = fast();
  EXPECT_EQ(before, "0,2");
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().empty());
  EXPECT_EQ(fast(), before);
  // The next attempt, whose balloon is gone.
  const Container gone = node.snapshot().At(a);
  node.Remove(a);
  const ContainerKey again = node.Add("a", {.namespace_name = "n", .request = 4000});
  ASSERT_TRUE(node.Place(again, &gone).ok());
  EXPECT_EQ(fast(), before);
}

TEST(BalloonsClassesTest, SharedCpusBesideOnesOfItsOwnAreRefusedWithTheWayOut) {
  const auto refusal = [](std::string_view name, QosClass qos, int64_t request) {
    BalloonsNode node("balloonTypes: [{name: x, namespaces: [n]}]");
    const ContainerKey key = node.Add(name, {.namespace_name = "n", .request = request});
    Pod& pod = node.snapshot().PodOf(key);
    pod.qos = qos;
    pod.annotations = StringMap({{"cpu-shared.crio.io/asks", "enable"}});
    return node.Place(key).status();
  };
  const Status refused = refusal("asks", QosClass::kGuaranteed, 2000);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(HasSubstr("annotation cpu-shared.crio.io: the policy balloons gives"),
                    HasSubstr("choose a balloon type with shareIdleCPUsInSame")));
  EXPECT_TRUE(refusal("other", QosClass::kGuaranteed, 2000).ok()) << "another container's";
  // Containers without CPUs of their own under any policy.
  EXPECT_TRUE(refusal("asks", QosClass::kBurstable, 2000).ok());
  EXPECT_TRUE(refusal("asks", QosClass::kGuaranteed, 1500).ok());
}

// It was created under another policy.
TEST(BalloonsClassesTest, ARunningContainerWithSharedCpusByAnnotationStaysInItsBalloon) {
  BalloonsNode node("balloonTypes: [{name: x, namespaces: [n]}]");
  const ContainerKey key = node.Add("asks", {.namespace_name = "n", .request = 2000});
  ASSERT_TRUE(node.Place(key).ok());
  Pod& pod = node.snapshot().PodOf(key);
  pod.qos = QosClass::kGuaranteed;
  pod.annotations = StringMap({{"cpu-shared.crio.io/asks", "enable"}});
  ASSERT_TRUE(node.policy().Reconcile(node.snapshot()).ok());
  EXPECT_EQ(node.PoolOf(key), "x[0]");
}

TEST(BalloonsClassesTest, NamesAreListedWithTheirPlace) {
  const ConfigNode section =
      ParseYaml("{idleCPUClass: quiet, balloonTypes: [{name: x, cpuClass: turbo, irqMode: sink}]}",
                "a.yaml")
          .value();
  std::vector<std::string> all;
  for (const NamedClass& one : BalloonsNamedClasses(section))
    all.push_back(one.where + " " + one.name);
  EXPECT_EQ(all, (std::vector<std::string>{"idleCPUClass quiet", "balloonTypes x: cpuClass turbo",
                                           "balloonTypes x: irqMode sink"}));
}

TEST(BalloonsClassesTest, DefinitionsAreChecked) {
  EXPECT_THAT(SectionError("cpuClasses: [{name: a, maxFreq: fast}]"),
              HasSubstr("is no clock rate"));
  EXPECT_THAT(SectionError("turboDomain: machine"), HasSubstr("turboDomain"));
  EXPECT_THAT(SectionError("balloonTypes: [{name: x, irqMode: away}]"), HasSubstr("irqMode"));
  const auto claims = [](std::string_view claim) {
    return fmt::format(
        "{{controllableInterrupts: [eth*], balloonTypes: [{{name: x, irqClaim: [{}]}}]}}", claim);
  };
  EXPECT_THAT(SectionError(claims("rtc0")), HasSubstr("denied interrupt"));
  EXPECT_EQ(SectionError(claims("eth0")), "");
  EXPECT_EQ(SectionError(claims("'eth[01]'")), "");
  EXPECT_THAT(SectionError(claims("'['")), HasSubstr("irqClaim: \"[\" has [ without ]"));
  EXPECT_THAT(SectionError("controllableInterrupts: ['eth[']"),
              HasSubstr("controllableInterrupts: \"eth[\" has [ without ]"));
}

}  // namespace
}  // namespace resmgr
