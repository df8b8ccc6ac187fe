// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/pod_annotation.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr std::string_view kKey = "prefer-isolated-cpus";

std::optional<bool> ReadAnnotation(const StringMap& annotations) {
  return ReadBoolAnnotation(annotations, kKey, "web");
}

TEST(PodAnnotationTest, BoolsAreReadAndAnythingElseIsAbsent) {
  const auto read = [](std::string_view value) {
    return ReadAnnotation(
        {{"prefer-isolated-cpus.resource-policy.nri.io/pod", std::string(value)}});
  };
  EXPECT_EQ(read("true"), true);
  EXPECT_EQ(read("False"), false);
  EXPECT_EQ(read("\"true\"\n"), true) << "as topology-aware reads it";
  EXPECT_EQ(read("false # for now"), false);
  EXPECT_EQ(read("true#"), std::nullopt) << "no comment";
  EXPECT_EQ(read("maybe"), std::nullopt);
  EXPECT_EQ(read("{web: true}"), std::nullopt) << "maps of containers are of the old form";
  EXPECT_EQ(read("[{"), std::nullopt);
  EXPECT_EQ(ReadAnnotation({}), std::nullopt);
}

TEST(PodAnnotationTest, TheOldFormHasOneValueOrOneForEachContainer) {
  const auto read = [](std::string_view value) {
    return ReadAnnotation(
        {{"cri-resource-manager.intel.com/prefer-isolated-cpus", std::string(value)}});
  };
  EXPECT_EQ(read("true"), true);
  EXPECT_EQ(read("\"false\""), false);
  EXPECT_EQ(read("web: true\nother: false\n"), true);
  EXPECT_EQ(read("{other: true, web: false}"), false);
  EXPECT_EQ(read("{other: true}"), std::nullopt);
  EXPECT_EQ(read("{web: [true]}"), std::nullopt);
}

TEST(PodAnnotationTest, TheNewFormsComeFirst) {
  EXPECT_EQ(ReadAnnotation({{"cri-resource-manager.intel.com/prefer-isolated-cpus", "true"},
                            {"prefer-isolated-cpus.resource-policy.nri.io", "false"}}),
            false);
}

TEST(PodAnnotationTest, TyposInMapsAreTold) {
  const StringMap annotations = {
      {"cri-resource-manager.intel.com/prefer-shared-cpus",
       "{main: maybe, side: [true], mian: true, third: null, later: false}"},
      {"cri-resource-manager.intel.com/memory-type", "{mian: dram, main: tape}"},
      {"resource-policy.nri.io/affinity", "mian: [side]"},
      {"cri-resource-manager.intel.com/hide-hyperthreads", "maybe"},
      {"cri-resource-manager.intel.com/cold-start", "duration: {"},
      {"example.com/prefer-shared-cpus", "mian: maybe"}};
  const std::string old = "annotation cri-resource-manager.intel.com/";
  EXPECT_THAT(MistypedInMaps(annotations, {"main", "side"}),
              testing::ElementsAre(
                  old + "memory-type: mian ignored: the pod has no container mian now; did you "
                        "mean main?",
                  old + "prefer-shared-cpus: main ignored: \"maybe\" is not true or false",
                  old + "prefer-shared-cpus: side ignored: a list is not true or false",
                  old + "prefer-shared-cpus: mian ignored: the pod has no container mian now; did "
                        "you mean main?",
                  "annotation resource-policy.nri.io/affinity: mian ignored: the pod has no "
                  "container mian now; did you mean main?"));
  EXPECT_THAT(MistypedInMaps(annotations), testing::SizeIs(2)) << "values alone";
}

// A pod's annotations may have 256 KiB, and policies read them on the event loop.
TEST(PodAnnotationTest, LongTextsAreNotRead) {
  const auto read = [](size_t size) {
    std::string value = "web: true\n";
    value.append(size - value.size(), '\n');
    const StringMap annotations = {{"cri-resource-manager.intel.com/prefer-isolated-cpus", value}};
    EXPECT_EQ(ReadAnnotation(annotations).has_value(), size <= kMaxAnnotationText) << size;
    return ReadAnnotation(annotations, kKey, "web").status();
  };
  EXPECT_TRUE(read(kMaxAnnotationText).ok());
  const Status refused = read(kMaxAnnotationText + 1);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(refused), "it has 16385 bytes, 16384 at most are read");
}

TEST(PodAnnotationTest, WhatCannotBeReadIsAnError) {
  const StringMap annotations = {{"cri-resource-manager.intel.com/cold-start", "{duration: ["}};
  EXPECT_EQ(ReadAnnotation(annotations, "cold-start", "web").status().code(),
            StatusCode::kInvalidArgument);
  const StatusOr<ConfigNode> none = ReadAnnotation(annotations, "memory-type", "web");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->kind, ConfigNode::Kind::kNull);
}

}  // namespace
}  // namespace resmgr
