// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotation_typos.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AnnotationTyposTest, AKeyLikeAKnownOneIsTold) {
  EXPECT_THAT(MistypedAnnotations({{"aligment.resource-policy.nri.io/container.main", "l3"}}),
              ElementsAre("annotation aligment.resource-policy.nri.io/container.main ignored: "
                          "unknown key; did you mean alignment?"));
  EXPECT_THAT(MistypedAnnotations({{"Alignment.cri-resource-manager.intel.com", "l3"}}),
              ElementsAre("annotation Alignment.cri-resource-manager.intel.com ignored: "
                          "unknown key; did you mean alignment?"));
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
