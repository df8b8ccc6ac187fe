// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/field_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::nri {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
