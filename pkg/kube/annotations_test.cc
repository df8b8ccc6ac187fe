// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Find(const StringMap& annotations) {
  const auto found = FindAnnotation(annotations, "memory-type", "web");
  return found ? std::string(found->value) : "none";
}

TEST(AnnotationsTest, TheNarrowestScopeWins) {
  StringMap annotations = {
      {"memory-type.cri-resource-manager.intel.com/container.other", "other"},
  };
  EXPECT_EQ(Find(annotations), "none");
  annotations.Set("memory-type.cri-resource-manager.intel.com", "bare");
  EXPECT_EQ(Find(annotations), "bare");
  annotations.Set("memory-type.cri-resource-manager.intel.com/pod", "pod");
  EXPECT_EQ(Find(annotations), "pod");
  annotations.Set("memory-type.cri-resource-manager.intel.com/container.web", "container");
  EXPECT_EQ(Find(annotations), "container");
}

TEST(AnnotationsTest, ScopeWinsOverDomainAndTheFirstDomainWithinAScope) {
  EXPECT_EQ(Find({{"memory-type.resource-policy.nri.io/container.web", "narrow"},
                  {"memory-type.cri-resource-manager.intel.com/pod", "wide"}}),
            "narrow");
  EXPECT_EQ(Find({{"memory-type.resource-policy.nri.io/pod", "second"},
                  {"memory-type.cri-resource-manager.intel.com/pod", "first"}}),
            "first");
  EXPECT_EQ(Find({{"memory-type.resource-policy.nri.io", "second"}}), "second");
}

TEST(AnnotationsTest, TellsWhichKeyDecided) {
  const StringMap annotations = {{"memory-type.resource-policy.nri.io/pod", "dram"}};
  EXPECT_EQ(FindAnnotation(annotations, "memory-type", "web")->key,
            "memory-type.resource-policy.nri.io/pod");
}

TEST(AnnotationsTest, AChangeNamesTheKeyThatDecidesOrOneThatWould) {
  const StringMap annotations = {{"k.resource-policy.nri.io/pod", "true"},
                                 {"cri-resource-manager.intel.com/old", "{main: true}"}};
  EXPECT_EQ(AnnotationChange(annotations, "k", "main", "false"),
            "the annotation k.resource-policy.nri.io/pod: \"false\"");
  EXPECT_EQ(AnnotationChange(annotations, "old", "main", "false"),
            "the annotation cri-resource-manager.intel.com/old: \"false\"");
  const std::string absent = AnnotationChange(annotations, "new", "main", "true");
  EXPECT_EQ(absent, "the annotation new.resource-policy.nri.io/container.main: \"true\"");
}

TEST(AnnotationsTest, OtherKeysAndDomainsDoNotCount) {
  EXPECT_EQ(Find({{"memory-type.example.com/pod", "x"},
                  {"xmemory-type.resource-policy.nri.io/pod", "x"},
                  {"resource-policy.nri.io/memory-type", "x"},
                  {"cri-resource-manager.intel.com/memory", "x"},
                  {"cri-resource-manager.intel.com/memory-type/pod", "x"},
                  {"cri-resource-manager.intel.com", "x"}}),
            "none");
}

TEST(AnnotationsTest, TheOldFormComesAfterAllOthers) {
  StringMap annotations = {{"cri-resource-manager.intel.com/affinity", "x"},
                           {"cri-resource-manager.intel.com/memory-type", "old"},
                           {"cri-resource-manager.intel.com/zone", "x"}};
  EXPECT_EQ(Find(annotations), "old");
  EXPECT_TRUE(FindAnnotation(annotations, "memory-type", "web")->old_form);
  annotations.Set("memory-type.resource-policy.nri.io", "new");
  EXPECT_EQ(Find(annotations), "new");
  EXPECT_FALSE(FindAnnotation(annotations, "memory-type", "web")->old_form);
}

TEST(AnnotationsTest, LongerKeysAndUnknownScopesDoNotCount) {
  EXPECT_EQ(Find({{"memory-type-x.resource-policy.nri.io", "x"},
                  {"memory-type.resource-policy.nri.io/web", "x"},
                  {"memory-type.resource-policy.nri.io/container.", "x"},
                  {"memory-type.resource-policy.nri.io.example.com", "x"},
                  {"memory-type", "x"}}),
            "none");
}

TEST(CrioAnnotationsTest, TheContainersOwnOneWins) {
  const StringMap annotations({{"cpu-shared.crio.io", "enable"}, {"cpu-shared.crio.io/b", "no"}});
  EXPECT_EQ(FindCrioAnnotation(annotations, kCpuSharedAnnotation, "a")->first,
            "cpu-shared.crio.io");
  EXPECT_EQ(FindCrioAnnotation(annotations, kCpuSharedAnnotation, "b")->second, "no");
  EXPECT_FALSE(FindCrioAnnotation({}, kCpuSharedAnnotation, "a").has_value());
}

TEST(CrioAnnotationsTest, SharedCpusAreEnabledByThisWordAlone) {
  const auto wants = [](const char* value) {
    return WantsSharedCpus(StringMap({{"cpu-shared.crio.io/a", value}}), "a");
  };
  EXPECT_TRUE(wants("enable"));
  for (const char* const value : {"", "true", "disable", "Enable"})
    EXPECT_FALSE(wants(value)) << value;
  EXPECT_FALSE(WantsSharedCpus(StringMap({{"cpu-shared.crio.io/a", "enable"}}), "b"));
}

TEST(AnnotationTyposTest, AKeyLikeAKnownOneIsTold) {
  EXPECT_THAT(MistypedAnnotations({{"aligment.resource-policy.nri.io/container.main", "l3"}}),
              ElementsAre("annotation aligment.resource-policy.nri.io/container.main ignored: "
                          "unknown key; did you mean alignment?"));
  EXPECT_THAT(MistypedAnnotations({{"Alignment.cri-resource-manager.intel.com", "l3"}}),
              ElementsAre("annotation Alignment.cri-resource-manager.intel.com ignored: "
                          "unknown key; did you mean alignment?"));
}

TEST(AnnotationTyposTest, AKeyBehindItsDomainIsLookedAtToo) {
  const auto why = [](const char* annotation) {
    return MistypedAnnotations({{annotation, "true"}});
  };
  EXPECT_THAT(why("cri-resource-manager.intel.com/prefer-shared-cpu"),
              ElementsAre("annotation cri-resource-manager.intel.com/prefer-shared-cpu ignored: "
                          "unknown key; did you mean prefer-shared-cpus?"));
  EXPECT_THAT(why("resource-policy.nri.io/afinity"),
              ElementsAre("annotation resource-policy.nri.io/afinity ignored: unknown key; did you "
                          "mean affinity?"));
  EXPECT_THAT(why("resource-policy.nri.io/prefer-shared-cpus"),
              ElementsAre("annotation resource-policy.nri.io/prefer-shared-cpus ignored: write "
                          "prefer-shared-cpus.resource-policy.nri.io"));
  EXPECT_THAT(why("cri-resource-manager.intel.com/container-id"), IsEmpty());
  EXPECT_THAT(why("cri-resource-manager.intel.com/anti-affinity"), IsEmpty());
  EXPECT_THAT(why("resource-policy.nri.io"), IsEmpty());
}

TEST(AnnotationTyposTest, TheEndIsPodOrAContainer) {
  for (const char* const end : {"/contaner.main", "/Pod", "/main", "/", "/container."}) {
    const std::string annotation = fmt::format("alignment.resource-policy.nri.io{}", end);
    EXPECT_THAT(MistypedAnnotations({{annotation, "l3"}}),
                ElementsAre(fmt::format("annotation {} ignored: it can end with /pod or "
                                        "/container.NAME",
                                        annotation)));
  }
}

// Policies take a value that is neither true nor false for none.
TEST(AnnotationTyposTest, ABooleanIsTrueOrFalse) {
  for (const char* const annotation :
       {"hide-hyperthreads.resource-policy.nri.io", "require-isolated-cpus.resource-policy.nri.io",
        "cpu.preserve.cri-resource-manager.intel.com/container.main",
        "cri-resource-manager.intel.com/prefer-isolated-cpus"}) {
    EXPECT_THAT(MistypedAnnotations({{annotation, "maybe"}}),
                ElementsAre(fmt::format("annotation {} ignored: \"maybe\" is not true or false",
                                        annotation)));
    for (const char* const value : {"true", "No", " on\n", "\"1\"", "'false'", "", "true # comment",
                                    "\"no\"\n# x\n", "# none"})
      EXPECT_THAT(MistypedAnnotations({{annotation, value}}), IsEmpty()) << value;
  }
  EXPECT_THAT(
      MistypedAnnotations({{"cri-resource-manager.intel.com/prefer-isolated-cpus", "main: maybe"}}),
      IsEmpty())
      << "a map from containers to values";
}

TEST(AnnotationTyposTest, KnownAndForeignAnnotationsAreNoTypos) {
  EXPECT_THAT(
      MistypedAnnotations({{"alignment.resource-policy.nri.io", "l3"},
                           {"cpu.preserve.resource-policy.nri.io/pod", "true"},
                           {"memory-type.cri-resource-manager.intel.com/container.x", "hbm"},
                           {"cri-resource-manager.intel.com/affinity", "{}"},
                           {"resource-policy.nri.io/affinity", "{}"},
                           {"owner.resource-policy.nri.io", "me"},
                           {"aligment.resource-policy.nri.iot", "l3"},
                           {"aligment.example.com", "l3"}}),
      IsEmpty());
}

TEST(AnnotationTyposTest, AContainerThatThePodDoesNotHaveIsToldIfOneIsLikeIt) {
  const StringMap annotations = {{"alignment.resource-policy.nri.io/container.mian", "l3"},
                                 {"alignment.resource-policy.nri.io/container.side", "l3"},
                                 {"alignment.resource-policy.nri.io/container.later", "l3"}};
  EXPECT_THAT(MistypedContainers(annotations, {"side", "main"}),
              ElementsAre("annotation alignment.resource-policy.nri.io/container.mian ignored: the "
                          "pod has no container mian now; did you mean main?"));
  EXPECT_THAT(MistypedAnnotations(annotations), IsEmpty());
}

TEST(AnnotationTyposTest, ThereAreNotMoreSentencesThanAreRead) {
  StringMap annotations;
  for (int i = 0; i < 20; ++i)
    annotations.Set(fmt::format("aligment.resource-policy.nri.io/container.c{}", i), "l3");
  EXPECT_EQ(MistypedAnnotations(annotations).size(), 5U);
}

}  // namespace
}  // namespace resmgr
