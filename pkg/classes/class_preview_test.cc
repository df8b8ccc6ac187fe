// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_preview.h"

#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/classes/class_choice.h"
#include "pkg/classes/testing/classed_pod.h"
#include "pkg/config/config.h"
#include "test/support/machines/machines.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::IsOk;
using testing::ElementsAre;
using testing::EndsWith;
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
    lines.reserve(classes.size());
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
                          "idle 10us by classes.isolation: 10",
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

TEST_F(ClassPreviewTest, AClassOfAKindThatHasNoneIsUnknownToo) {
  const std::array<std::pair<const char*, const char*>, 5> annotations = {
      {{"rdt", "rdtclass.resource-policy.nri.io/pod"},
       {"blockio", "blockioclass.resource-policy.nri.io/pod"},
       {"scheduling", "scheduling-class.resource-policy.nri.io/pod"},
       {"cpu", "cpu-class.resource-policy.nri.io/pod"},
       {"memory", "class.memory-qos.nri.io"}}};
  const ClassesConfig elsewhere = Read("{AllowedNamespaces: {isolation: [ns]}}");
  for (const auto& [kind, annotation] : annotations) {
    pod_.annotations = StringMap({{annotation, "gold"}});
    const ClassesConfig config = Read(fmt::format("{{AllowedNamespaces: {{{}: [ns]}}}}", kind));
    const auto chosen = ClassPreview(machine_, config, std::nullopt).Choose(classed_.container());
    EXPECT_EQ(chosen.status().code(), StatusCode::kInvalidArgument) << kind;
    EXPECT_THAT(std::string(Message(chosen.status())), EndsWith("; there are none"));
    EXPECT_THAT(ClassPreview(machine_, elsewhere, std::nullopt).Choose(classed_.container()),
                IsOk())
        << kind;
  }
  pod_.annotations = StringMap({{"rdtclass.resource-policy.nri.io/pod", "gold"}});
  const ClassesConfig off = Read("{rdt: {Enable: false}, AllowedNamespaces: {rdt: [ns]}}");
  EXPECT_THAT(ClassPreview(machine_, off, std::nullopt).Choose(classed_.container()), IsOk());
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

class ClassChoiceTest : public testing::Test {
 protected:
  ClassChoiceTest() {
    pod_.namespace_name = "shop";
    pod_.qos = QosClass::kBurstable;
    config_.namespaces["rdt"] = {"*"};
  }
  StatusOr<ClassChoice> Choose(std::initializer_list<StringMap::value_type> annotations,
                               std::string_view of_pool = "", bool by_qos = false) {
    pod_.annotations = StringMap(annotations);
    return ChooseClass("rdt",
                       {.pod = pod_,
                        .container = "main",
                        .annotations = own_,
                        .pool = "fast",
                        .class_of_pool = of_pool,
                        .by_qos = by_qos},
                       known_, config_);
  }
  std::string ErrorOf(std::initializer_list<StringMap::value_type> annotations) {
    return std::string(Message(Choose(annotations).status()));
  }

  Pod pod_;
  StringMap own_;
  std::vector<KnownClass> known_ = {{.name = "gold"},
                                    {.name = "silver"},
                                    {.name = "Burstable"},
                                    {.name = "pods", .denies_container_annotation = true},
                                    {.name = "containers", .denies_pod_annotation = true}};
  ClassesConfig config_;
};

TEST_F(ClassChoiceTest, TheNarrowestAnnotationWinsInAllItsForms) {
  for (const char* const key : {"rdtclass.resource-policy.nri.io/container.main",
                                "rdtclass.cri-resource-manager.intel.com/container.main",
                                "rdt.resources.beta.kubernetes.io/container.main"}) {
    const ClassChoice choice =
        Choose({{key, "gold"}, {"rdtclass.resource-policy.nri.io/pod", "silver"}}, "silver")
            .value();
    EXPECT_EQ(choice.name, "gold") << key;
    EXPECT_EQ(choice.source, fmt::format("annotation {}", key));
    EXPECT_TRUE(choice.by_pod);
  }
  for (const char* const key :
       {"rdtclass.resource-policy.nri.io/pod", "rdtclass.resource-policy.nri.io",
        "rdt.resources.beta.kubernetes.io/pod", "cri-resource-manager.intel.com/rdtclass"})
    EXPECT_EQ(Choose({{key, "silver"}})->name, "silver") << key;
  EXPECT_EQ(
      Choose({{"cri-resource-manager.intel.com/rdtclass", "{main: gold, other: silver}"}})->name,
      "gold");
  own_ = StringMap({{"io.kubernetes.cri.rdt-class", "gold"}});
  EXPECT_EQ(Choose({{"rdtclass.resource-policy.nri.io/pod", "silver"}})->name, "gold");
}

TEST_F(ClassChoiceTest, WithoutAnAnnotationThePoolThenTheQosClassThenNone) {
  EXPECT_EQ(Choose({}, "silver", true)->name, "silver");
  EXPECT_EQ(Choose({}, "silver")->source, "pool fast");
  EXPECT_FALSE(Choose({}, "silver")->by_pod);
  EXPECT_EQ(Choose({}, "", true)->name, "Burstable");
  EXPECT_EQ(Choose({}, "", true)->source, "QoS class Burstable");
  pod_.qos = QosClass::kBestEffort;
  EXPECT_EQ(Choose({}, "", true).value(), ClassChoice());
  EXPECT_EQ(Choose({{"rdtclass.resource-policy.nri.io", ""}}, "silver")->name, "");
}

TEST_F(ClassChoiceTest, AnUnknownClassIsRefusedOrIgnored) {
  EXPECT_EQ(
      ErrorOf({{"rdtclass.resource-policy.nri.io/pod", "bronze"}}),
      "annotation rdtclass.resource-policy.nri.io/pod: there is no class \"bronze\" of the kind "
      "rdt; there are: gold, silver, Burstable, pods, containers");
  EXPECT_THAT(ErrorOf({{"rdtclass.resource-policy.nri.io", "[a, b]"}}),
              HasSubstr("not the name of a class"));
  config_.unknown = ClassesConfig::Unknown::kIgnore;
  const ClassChoice choice =
      Choose({{"rdtclass.resource-policy.nri.io", "bronze"}}, "gold").value();
  EXPECT_EQ(choice.name, "gold");
  EXPECT_THAT(choice.note, HasSubstr("there is no class \"bronze\""));
}

TEST_F(ClassChoiceTest, AClassDeniesAnnotations) {
  EXPECT_EQ(Choose({{"rdtclass.resource-policy.nri.io/pod", "pods"}})->name, "pods");
  EXPECT_EQ(ErrorOf({{"rdtclass.resource-policy.nri.io/container.main", "pods"}}),
            "annotation rdtclass.resource-policy.nri.io/container.main: the class \"pods\" of the "
            "kind rdt is not for annotations of containers");
  EXPECT_THAT(ErrorOf({{"rdtclass.resource-policy.nri.io/pod", "containers"}}),
              HasSubstr("is not for annotations of pods"));
  EXPECT_EQ(Choose({{"rdtclass.resource-policy.nri.io/container.main", "containers"}})->name,
            "containers");
}

TEST_F(ClassChoiceTest, OnlyPodsOfItsNamespacesMayChooseAClass) {
  config_.namespaces = {{"rdt", {"kube-*"}}, {"rdt/silver", {"shop"}}};
  const ClassChoice choice =
      Choose({{"rdtclass.resource-policy.nri.io/pod", "gold"}}, "silver").value();
  EXPECT_EQ(choice.name, "silver");
  EXPECT_EQ(choice.note,
            "annotation rdtclass.resource-policy.nri.io/pod ignored: namespace shop is not in "
            "classes.AllowedNamespaces.rdt");
  EXPECT_TRUE(Choose({{"rdtclass.resource-policy.nri.io/pod", "silver"}})->by_pod);
  // Even a malformed one has no effect then.
  EXPECT_EQ(Choose({{"rdtclass.resource-policy.nri.io", "[a"}}, "silver")->name, "silver");
}

TEST_F(ClassChoiceTest, EachKindHasItsOwnKeys) {
  config_.namespaces["cpu"] = {"*"};
  pod_.annotations = StringMap({{"cpu-class.resource-policy.nri.io/pod", "gold"},
                                {"rdtclass.resource-policy.nri.io/pod", "silver"}});
  EXPECT_EQ(
      ChooseClass("cpu", {.pod = pod_, .container = "main", .annotations = own_}, known_, config_)
          ->name,
      "gold");
}

}  // namespace
}  // namespace resmgr
