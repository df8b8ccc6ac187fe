// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotations.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

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

}  // namespace
}  // namespace resmgr
