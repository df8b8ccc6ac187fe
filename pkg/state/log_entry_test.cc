// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/log_entry.h"

#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

const std::string kName(64, 'c');

TEST(LogEntryTest, IsReadBackAsItWasBuilt) {
  std::string text = "before";
  for (const size_t size :
       std::initializer_list<size_t>{0, 1, 15, 16, 17, 130, 240, 241, 1000, 100'000}) {
    const size_t begin = BeginEntry(EntryKind::kPut, kName, text);
    text.append(size, 'v');
    EndEntry(begin, text);
    AppendEntry(EntryKind::kErase, "x", "", text);
    std::string_view rest = std::string_view(text).substr(begin);
    EntryView entry;
    ASSERT_TRUE(TakeEntry(kLogVersion, rest, entry)) << size;
    EXPECT_EQ(entry.kind, EntryKind::kPut);
    EXPECT_EQ(entry.name, kName);
    EXPECT_EQ(entry.value, std::string(size, 'v'));
    ASSERT_TRUE(TakeEntry(kLogVersion, rest, entry)) << size;
    EXPECT_EQ(entry.kind, EntryKind::kErase);
    EXPECT_EQ(entry.name, "x");
    EXPECT_EQ(entry.value, "");
    EXPECT_TRUE(rest.empty());
  }
}

TEST(LogEntryTest, AnyBitMayBeWrong) {
  std::string text;
  AppendEntry(EntryKind::kPut, kName, std::string(200, 'v'), text);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    std::string_view rest = damaged;
    EntryView entry;
    EXPECT_FALSE(TakeEntry(kLogVersion, rest, entry)) << "bit " << bit;
    EXPECT_EQ(rest, damaged);
  }
}

// Some file systems leave zeros behind the last bytes that were synced.
TEST(LogEntryTest, ZerosAreNoEntry) {
  for (size_t size = 0; size < 300; ++size) {
    const std::string zeros(size, '\0');
    std::string_view rest = zeros;
    EntryView entry;
    EXPECT_FALSE(TakeEntry(kLogVersion, rest, entry)) << size;
  }
}

// The file outlives the program that wrote it.
TEST(LogEntryTest, IsTheSameInEveryBuild) {
  std::string text;
  AppendEntry(EntryKind::kPut, "name", "value", text);
  EXPECT_EQ(NumberAt(text.data()), 0x6375c508u);
}

TEST(RecordTest, IsFoundByItsName) {
  std::string text;
  AppendEntry(EntryKind::kPut, kName, "value", text);
  const Record record(text);
  EXPECT_EQ(record.entry(), text);
  EXPECT_EQ(record.name(), kName);
  EXPECT_EQ(record.value(), "value");
  EXPECT_EQ(Record::Hash()(record), Record::Hash()(std::string_view(kName)));
  EXPECT_TRUE(Record::Equal()(record, std::string_view(kName)));
  EXPECT_FALSE(Record::Equal()(record, "other"));
}

}  // namespace
}  // namespace resmgr
