// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_preview.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/testing/classed_pod.h"
#include "pkg/config/config.h"
#include "test/support/machines/machines.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClassPreviewTest : public testing::Test {
 protected:
  static ClassesConfig Read(std::string_view classes) {
    const StatusOr<Config> config = ParseConfig(fmt::format("classes: {}", classes), "f", {});
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->classes : ClassesConfig();
  }
  ClassPreviewTest() {
    pod_.name = "p";
    pod_.namespace_name = "ns";
    placement_.exclusive = CpuSet{1, 2};
    placement_.cpus = placement_.exclusive;
    placement_.pool = "fast";
  }
  // "KIND NAME by SOURCE: VALUE".
  static std::vector<std::string> Lines(const std::vector<PreviewedClass>& classes) {
    std::vector<std::string> lines;
    for (const PreviewedClass& one : classes)
      lines.push_back(fmt::format("{} {} by {}: {}", one.kind, one.name, one.source, one.value));
    return lines;
  }

  const Machine machine_ = test::S1Ht();  // CPUs 0-7, one L3 cache
  test::ClassedPod classed_{.memory_limit = 1 << 30};
  Pod& pod_ = classed_.pod;
  Placement& placement_ = classed_.placement;
};

TEST_F(ClassPreviewTest, TellsWhatEachClassComesTo) {
  const ClassesConfig config = Read(
      "{isolation: {Interrupts: isolate, MaxLatency: 10us, Quota: lift, Partition: isolated},"
      " memory: [{name: bronze, swaplimitratio: 0.5}],"
      " scheduling: [{name: batch, policy: idle, ioClass: be, ioPriority: 6}],"
      " rdt: {partitions: {a: {l3Allocation: 60%, classes: {gold: {}}}}},"
      " cpu: [{name: turbo, maxFreq: turbo}]}");
  classed_.of_pool = {
      {"memory", "bronze"}, {"scheduling", "batch"}, {"rdt", "gold"}, {"cpu", "turbo"}};
  const RdtMachine rdt = ParseRdtMachine("l3:20", machine_).value();
  const ClassPreview preview(machine_, config, rdt);
  const ChosenClasses chosen = preview.Choose(classed_.container()).value();
  FreeOf free{.interrupts = CpuSet{3}};
  preview.AddFree(chosen, placement_.exclusive, free);
  EXPECT_THAT(Lines(preview.Describe(chosen, placement_.exclusive, free)),
              ElementsAre("interrupts isolate by classes.isolation: f1",
                          "quota lift by classes.isolation: max",
                          "partition isolated by classes.isolation: 1-2",
                          "idle 10 by classes.isolation: 10",
                          "memory bronze by pool fast: memory.high=536870912 memory.swap.max=max",
                          "cpu turbo by pool fast: ", "rdt gold by pool fast: L3:0=fff",
                          "scheduling batch by pool fast: idle, io be 6"));
}

TEST_F(ClassPreviewTest, TellsTheInterruptsOfAContainer) {
  const ClassPreview preview(machine_, Read("{AllowedNamespaces: {isolation: [ns]}}"),
                             std::nullopt);
  pod_.annotations =
      StringMap({{"irq-affinity.resource-policy.nri.io", "{claim: [eth0], mask: '*'}"}});
  const ChosenClasses chosen = preview.Choose(classed_.container()).value();
  EXPECT_THAT(Lines(preview.Describe(chosen, placement_.exclusive, {})),
              ElementsAre("interrupts affinity by annotation irq-affinity.resource-policy.nri.io: "
                          "claim eth0; mask *"));
}

TEST_F(ClassPreviewTest, RefusesWhatTheDaemonRefuses) {
  const ClassesConfig config = Read(
      "{cpu: [{name: turbo, maxFreq: turbo}], AllowedNamespaces: {cpu: [ns], isolation: [ns]}}");
  const ClassPreview preview(machine_, config, std::nullopt);
  pod_.annotations = StringMap({{"cpu-class.resource-policy.nri.io/pod", "quick"}});
  const Status unknown = preview.Choose(classed_.container()).status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(unknown)), HasSubstr("there is no class \"quick\""));
  EXPECT_THAT(preview.Describe(preview.ChooseLeniently(classed_.container()), {}, {}), IsEmpty());
  pod_.annotations = StringMap({{"cpu-quota.crio.io", "off"}});
  EXPECT_EQ(preview.Choose(classed_.container()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ClassPreviewTest, SchemataOfAGivenCache) {
  const RdtConfig config =
      Read(
          "{rdt: {partitions: {fast: {l3Allocation: 60%, classes: {gold: {}}}, slow: "
          "{l3Allocation: "
          "40%, mbAllocation: [100%], classes: {bronze: {l3Allocation: 66%, mbAllocation: "
          "[33%]}}}}}}")
          .rdt;
  const Machine four = test::U16();
  const RdtMachine rdt = ParseRdtMachine("l3:20,mb:10", four).value();
  ASSERT_EQ(rdt.l3->ids.size(), four.l3_groups().size());
  const auto schemata = PreviewSchemata(config, ParseRdtMachine("l3:20,mb:10", machine_).value());
  ASSERT_TRUE(schemata.ok()) << schemata.status();
  using Row = std::pair<std::string, std::string>;
  EXPECT_THAT(*schemata,
              ElementsAre(Row("bronze", "L3:0=3f000 MB:0=40"), Row("gold", "L3:0=fff MB:0=100")));
  const auto split = PreviewSchemata(
      Read("{rdt: {partitions: {a: {l3Allocation: {all: {unified: 100%, code: 50%, data: 100%}}, "
           "classes: {gold: {}}}}}}")
          .rdt,
      ParseRdtMachine("l3:8,cdp", machine_).value());
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(*split, ElementsAre(Row("gold", "L3CODE:0=f L3DATA:0=ff")));
  EXPECT_EQ(PreviewSchemata(config, ParseRdtMachine("mb:10", machine_).value()).status().code(),
            StatusCode::kInvalidArgument)
      << "there is no L3 cache";
}

TEST_F(ClassPreviewTest, ADescriptionOfCachesIsStrict) {
  for (const char* const text :
       {"", "l3", "l3:", "l3:0", "l3:65", "l3:x", "l4:8", "l3:20,,mb:10", "mb:101", "L3:20"})
    EXPECT_EQ(ParseRdtMachine(text, machine_).status().code(), StatusCode::kInvalidArgument)
        << text;
  EXPECT_EQ(ParseRdtMachine("l3:64", machine_).value().l3->mask, ~uint64_t{0});
  EXPECT_EQ(ParseRdtMachine("l2:8,min:2", machine_).value().l2->min_bits, 2U);
}

}  // namespace
}  // namespace resmgr
