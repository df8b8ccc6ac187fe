// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/update_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/messages.h"
#include "test/support/status_matchers.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Fails;
using resmgr::test::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ContainerUpdateList Updates(std::string_view text) {
  return Make<api::UpdateContainerResponse>(text).update();
}

UpdateMerge OfTarget() {
  return UpdateMerge(Make<api::UpdateContainerRequest>(R"(
    pod { id: "pod" } container { id: "ctr" }
    linux_resources { cpu { shares { value: 512 } quota { value: 7 } }
                      hugepage_limits { page_size: "2MB" limit: 4 } })"));
}

TEST(UpdateMergeTest, TheTargetsResourcesAreOverlaid) {
  UpdateMerge merge = OfTarget();
  EXPECT_THAT(merge.Add("10-a", Updates(R"(
    update { container_id: "ctr" linux { resources { cpu { shares { value: 0 } cpus: "3" }
             hugepage_limits { page_size: "2MB" limit: 8 } } } })")),
              IsOk());
  EXPECT_THAT(merge.request(), Is(R"(
    pod { id: "pod" } container { id: "ctr" }
    linux_resources { cpu { shares { value: 0 } quota { value: 7 } cpus: "3" }
                      hugepage_limits { page_size: "2MB" limit: 8 } })"));
  EXPECT_THAT(merge.Add("20-b", Updates(R"(
    update { container_id: "ctr" linux { resources { memory { limit { value: 9 } } } } }
    update { container_id: "ctr" linux { resources {
             hugepage_limits { page_size: "1GB" limit: 1 } } } })")),
              IsOk());
  EXPECT_THAT(merge.request().linux_resources(), Is(R"(
    cpu { shares { value: 0 } quota { value: 7 } cpus: "3" } memory { limit { value: 9 } }
    hugepage_limits { page_size: "2MB" limit: 8 } hugepage_limits { page_size: "1GB" limit: 1 })"));
  EXPECT_THAT(merge.target(), Is(R"(
    cpu { shares { value: 0 } cpus: "3" } memory { limit { value: 9 } }
    hugepage_limits { page_size: "2MB" limit: 8 } hugepage_limits { page_size: "1GB" limit: 1 })"));
  EXPECT_THAT(merge.updates(), IsEmpty());
  EXPECT_EQ(merge.owned("ctr").size(), 5U);
}

TEST(UpdateMergeTest, OthersGetOnlyWhatPluginsSet) {
  UpdateMerge merge = OfTarget();
  EXPECT_THAT(merge.Add("10-a", Updates("update { container_id: 'x' linux { resources { "
                                        "cpu { cpus: '3' } } } ignore_failure: true }")),
              IsOk());
  EXPECT_THAT(merge.updates(), ElementsAre(Is("container_id: 'x' ignore_failure: true linux { "
                                              "resources { cpu { cpus: '3' } } }")));
  EXPECT_THAT(merge.target(), Is(""));
  EXPECT_THAT(merge.request().linux_resources(),
              Is("cpu { shares { value: 512 } quota { value: 7 } } "
                 "hugepage_limits { page_size: '2MB' limit: 4 }"));
}

TEST(UpdateMergeTest, AFieldOfAContainerHasOneOwner) {
  UpdateMerge merge;
  const char* const cpus = "update { container_id: 'x' linux { resources { cpu { cpus: '3' } } } }";
  EXPECT_THAT(merge.Add("10-a", Updates(cpus)), IsOk());
  EXPECT_THAT(merge.Add("20-b", Updates("update { container_id: 'y' linux { resources { "
                                        "cpu { cpus: '3' } } } } " +
                                        std::string(cpus))),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("CPUSetCPUs")));
  EXPECT_EQ(merge.updates().size(), 1U);
  EXPECT_THAT(merge.owned("y"), IsEmpty());
  // The field is set twice in one reply.
  EXPECT_THAT(merge.Add("20-b", Updates("update { container_id: 'y' linux { resources { "
                                        "pids { limit: 1 } } } } update { container_id: 'y' "
                                        "linux { resources { pids { limit: 1 } } } }")),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("PidsLimit")));
}

TEST(UpdateMergeTest, WhatMayFailIsLeftOutWhereItIsInConflict) {
  UpdateMerge merge;
  EXPECT_THAT(merge.Add("10-a", Updates("update { container_id: 'x' linux { resources { "
                                        "cpu { cpus: '3' } } } }")),
              IsOk());
  EXPECT_THAT(merge.Add("20-b", Updates(R"(
    update { container_id: "x" ignore_failure: true
             linux { resources { memory { limit { value: 1 } } cpu { cpus: "4" } } } }
    update { container_id: "x" ignore_failure: true
             linux { resources { cpu { mems: "1" } } } })")),
              IsOk());
  // The first update is left out as a whole, so the second may set the same field.
  EXPECT_THAT(merge.updates(), ElementsAre(Is("container_id: 'x' linux { resources { "
                                              "cpu { cpus: '3' mems: '1' } } }")));
  EXPECT_THAT(merge.Add("30-c", Updates("update { container_id: 'x' linux { resources { "
                                        "memory { limit { value: 1 } } } } }")),
              IsOk());
}

TEST(UpdateMergeTest, ItMayFailIfAllSaySo) {
  UpdateMerge merge;
  EXPECT_THAT(merge.Add("10-a", Updates(R"(
    update { container_id: "x" ignore_failure: true linux { resources { cpu { cpus: "1" } } } }
    update { container_id: "y" ignore_failure: true linux { resources { cpu { cpus: "1" } } } })")),
              IsOk());
  EXPECT_THAT(merge.Add("20-b", Updates(R"(
    update { container_id: "x" linux { resources { cpu { mems: "1" } } } }
    update { container_id: "y" ignore_failure: true linux { resources { cpu { mems: "1" } } } })")),
              IsOk());
  ASSERT_EQ(merge.updates().size(), 2U);
  EXPECT_FALSE(merge.updates()[0].ignore_failure());
  EXPECT_TRUE(merge.updates()[1].ignore_failure());
}

TEST(UpdateMergeTest, WhatSetsNothingIsNoUpdate) {
  UpdateMerge merge;
  EXPECT_THAT(merge.Add("10-a", Updates("update { container_id: 'x' } "
                                        "update { linux { resources { cpu { cpus: '1' } } } }")),
              IsOk());
  EXPECT_THAT(merge.updates(), IsEmpty());
}

}  // namespace
}  // namespace resmgr::nri
