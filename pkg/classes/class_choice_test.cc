// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_choice.h"

#include <initializer_list>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::HasSubstr;

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
