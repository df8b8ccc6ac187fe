// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/update_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/host/merge/field_ledger.h"
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

void Add(UpdateMerge& merge, std::string_view plugin, std::string_view text) {
  EXPECT_THAT(merge.Add(plugin, Updates(text)), IsOk());
}

UpdateMerge OfTarget() {
  return UpdateMerge(Make<api::UpdateContainerRequest>(R"(
    pod { id: "pod" } container { id: "ctr" }
    linux_resources { cpu { shares { value: 512 } quota { value: 7 } }
                      hugepage_limits { page_size: "2MB" limit: 4 } })"));
}

TEST(UpdateMergeTest, TheTargetsResourcesAreOverlaid) {
  UpdateMerge merge = OfTarget();
  Add(merge, "10-a", R"(
    update { container_id: "ctr" linux { resources { cpu { shares { value: 0 } cpus: "3" }
             hugepage_limits { page_size: "2MB" limit: 8 } } } })");
  EXPECT_THAT(merge.request(), Is(R"(
    pod { id: "pod" } container { id: "ctr" }
    linux_resources { cpu { shares { value: 0 } quota { value: 7 } cpus: "3" }
                      hugepage_limits { page_size: "2MB" limit: 8 } })"));
  Add(merge, "20-b", R"(
    update { container_id: "ctr" linux { resources { memory { limit { value: 9 } } } } }
    update { container_id: "ctr" linux { resources {
             hugepage_limits { page_size: "1GB" limit: 1 } } } })");
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
  Add(merge, "10-a",
      "update { container_id: 'x' linux { resources { "
      "cpu { cpus: '3' } } } ignore_failure: true }");
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
  Add(merge, "10-a", cpus);
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
  Add(merge, "10-a",
      "update { container_id: 'x' linux { resources { "
      "cpu { cpus: '3' } } } }");
  Add(merge, "20-b", R"(
    update { container_id: "x" ignore_failure: true
             linux { resources { memory { limit { value: 1 } } cpu { cpus: "4" } } } }
    update { container_id: "x" ignore_failure: true
             linux { resources { cpu { mems: "1" } } } })");
  // The first update is left out as a whole, so the second may set the same field.
  EXPECT_THAT(merge.updates(), ElementsAre(Is("container_id: 'x' linux { resources { "
                                              "cpu { cpus: '3' mems: '1' } } }")));
  Add(merge, "30-c",
      "update { container_id: 'x' linux { resources { "
      "memory { limit { value: 1 } } } } }");
}

TEST(UpdateMergeTest, ItMayFailIfAllSaySo) {
  UpdateMerge merge;
  Add(merge, "10-a", R"(
    update { container_id: "x" ignore_failure: true linux { resources { cpu { cpus: "1" } } } }
    update { container_id: "y" ignore_failure: true linux { resources { cpu { cpus: "1" } } } })");
  Add(merge, "20-b", R"(
    update { container_id: "x" linux { resources { cpu { mems: "1" } } } }
    update { container_id: "y" ignore_failure: true linux { resources { cpu { mems: "1" } } } })");
  ASSERT_EQ(merge.updates().size(), 2U);
  EXPECT_FALSE(merge.updates()[0].ignore_failure());
  EXPECT_TRUE(merge.updates()[1].ignore_failure());
}

TEST(UpdateMergeTest, WhatSetsNothingIsNoUpdate) {
  UpdateMerge merge;
  Add(merge, "10-a",
      "update { container_id: 'x' } "
      "update { linux { resources { cpu { cpus: '1' } } } }");
  EXPECT_THAT(merge.updates(), IsEmpty());
}

OwnedField Owned(api::Field field, std::string key, std::string plugin, bool removed = false) {
  return {.field = field, .key = std::move(key), .plugin = std::move(plugin), .removed = removed};
}

TEST(FieldLedgerTest, FieldsHaveTheNamesOfNri) {
  EXPECT_EQ(FieldName(api::FIELD_ANNOTATIONS), "Annotations");
  EXPECT_EQ(FieldName(api::FIELD_CPUSET_CPUS), "CPUSetCPUs");
  EXPECT_EQ(FieldName(api::FIELD_MEMORY_POLICY), "MemoryPolicy");
  EXPECT_EQ(FieldName(static_cast<api::Field>(41)), "");
  EXPECT_EQ(FieldName(static_cast<api::Field>(-1)), "");
}

TEST(FieldLedgerTest, TheSecondIsInConflictWithTheFirst) {
  FieldLedger ledger;
  EXPECT_TRUE(ledger.For("c", "10-a").Claim(api::FIELD_CPUSHARES).ok());
  EXPECT_EQ(Message(ledger.For("c", "20-b").Claim(api::FIELD_CPUSHARES)),
            "plugins \"20-b\" and \"10-a\" both tried to set CPUShares");
  EXPECT_TRUE(ledger.For("c", "10-a").Claim(api::FIELD_ENV, "HOME").ok());
  const Status conflict = ledger.For("c", "20-b").Claim(api::FIELD_ENV, "HOME");
  EXPECT_EQ(Message(conflict), "plugins \"20-b\" and \"10-a\" both tried to set Env HOME");
  EXPECT_EQ(conflict.code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(ledger.For("c", "10-a").Claim(api::FIELD_ENV, "HOME").ok());
}

TEST(FieldLedgerTest, KeysFieldsAndContainersAreApart) {
  FieldLedger ledger;
  const auto a = ledger.For("c", "10-a");
  EXPECT_TRUE(a.Claim(api::FIELD_ENV, "A").ok());
  EXPECT_TRUE(a.Claim(api::FIELD_ENV, "B").ok());
  EXPECT_TRUE(a.Claim(api::FIELD_ANNOTATIONS, "A").ok());
  EXPECT_TRUE(ledger.For("d", "20-b").Claim(api::FIELD_ENV, "A").ok());
  EXPECT_THAT(ledger.Of("c"),
              ElementsAre(Owned(api::FIELD_ANNOTATIONS, "A", "10-a"),
                          Owned(api::FIELD_ENV, "A", "10-a"), Owned(api::FIELD_ENV, "B", "10-a")));
  EXPECT_THAT(ledger.Of("d"), ElementsAre(Owned(api::FIELD_ENV, "A", "20-b")));
  EXPECT_THAT(ledger.Of("e"), IsEmpty());
}

TEST(FieldLedgerTest, OnlyThePluginThatRemovesAnEntryMaySetIt) {
  FieldLedger ledger;
  EXPECT_TRUE(ledger.For("c", "10-a").Claim(api::FIELD_MOUNTS, "/x").ok());
  const auto b = ledger.For("c", "20-b");
  b.Clear(api::FIELD_MOUNTS, "/x");
  EXPECT_THAT(ledger.Of("c"), ElementsAre(Owned(api::FIELD_MOUNTS, "/x", "20-b", true)));
  EXPECT_EQ(Message(ledger.For("c", "30-c").Claim(api::FIELD_MOUNTS, "/x")),
            "plugins \"30-c\" and \"20-b\" both tried to set Mounts /x");
  EXPECT_TRUE(b.Claim(api::FIELD_MOUNTS, "/x").ok());
  EXPECT_FALSE(b.Claim(api::FIELD_MOUNTS, "/x").ok());
  EXPECT_THAT(ledger.Of("c"), ElementsAre(Owned(api::FIELD_MOUNTS, "/x", "20-b")));
}

TEST(FieldLedgerTest, OwnersOfHooksAddUp) {
  FieldLedger ledger;
  ledger.For("c", "10-a").Join(api::FIELD_OCI_HOOKS);
  ledger.For("c", "20-b").Join(api::FIELD_OCI_HOOKS);
  EXPECT_THAT(ledger.Of("c"), ElementsAre(Owned(api::FIELD_OCI_HOOKS, "", "10-a,20-b")));
}

TEST(FieldLedgerTest, UndoGivesBackWhatWas) {
  FieldLedger ledger;
  const auto a = ledger.For("c", "10-a");
  EXPECT_TRUE(a.Claim(api::FIELD_ENV, "A").ok());
  a.Join(api::FIELD_OCI_HOOKS);
  ledger.Keep();
  const std::vector<OwnedField> before = ledger.Of("c");

  const FieldLedger::Mark mark = ledger.mark();
  const auto b = ledger.For("c", "20-b");
  b.Clear(api::FIELD_ENV, "A");
  EXPECT_TRUE(b.Claim(api::FIELD_ENV, "A").ok());
  EXPECT_TRUE(b.Claim(api::FIELD_ENV, "B").ok());
  b.Join(api::FIELD_OCI_HOOKS);
  const FieldLedger::Mark later = ledger.mark();
  b.Clear(api::FIELD_ENV, "B");
  ledger.UndoTo(later);
  EXPECT_THAT(ledger.Of("c"),
              ElementsAre(Owned(api::FIELD_OCI_HOOKS, "", "10-a,20-b"),
                          Owned(api::FIELD_ENV, "A", "20-b"), Owned(api::FIELD_ENV, "B", "20-b")));
  ledger.UndoTo(mark);
  EXPECT_EQ(ledger.Of("c"), before);
}

TEST(FieldLedgerTest, ReportsToValidators) {
  FieldLedger ledger;
  EXPECT_TRUE(ledger.For("c", "10-a").Claim(api::FIELD_MEM_LIMIT).ok());
  EXPECT_TRUE(ledger.For("c", "10-a").Claim(api::FIELD_CGROUPS_UNIFIED, "memory.high").ok());
  ledger.For("c", "20-b").Clear(api::FIELD_ENV, "A");
  EXPECT_TRUE(ledger.For("d", "20-b").Claim(api::FIELD_MEM_LIMIT).ok());

  const api::OwningPlugins report = ledger.Report();
  ASSERT_EQ(report.owners_size(), 2);
  const api::FieldOwners& c = report.owners().at("c");
  EXPECT_EQ(c.simple().size(), 1U);
  EXPECT_EQ(c.simple().at(api::FIELD_MEM_LIMIT), "10-a");
  EXPECT_EQ(c.compound().size(), 2U);
  EXPECT_EQ(c.compound().at(api::FIELD_CGROUPS_UNIFIED).owners().at("memory.high"), "10-a");
  EXPECT_EQ(c.compound().at(api::FIELD_ENV).owners().at("A"), "-20-b");
  EXPECT_EQ(report.owners().at("d").simple().at(api::FIELD_MEM_LIMIT), "20-b");
}

TEST(FieldLedgerTest, NamesInMessagesAreCutAndPrintable) {
  FieldLedger ledger;
  const std::string key = "A\n" + std::string(1'000, 'x');
  EXPECT_TRUE(ledger.For("c", "10-a").Claim(api::FIELD_ENV, key).ok());
  const Status conflict = ledger.For("c", "20-b").Claim(api::FIELD_ENV, key);
  EXPECT_THAT(std::string(Message(conflict)), HasSubstr("Env A\\x0axxx"));
  EXPECT_LT(Message(conflict).size(), 400U);
}

}  // namespace
}  // namespace resmgr::nri
