// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_container.h"

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(SavedContainerTest, ReadsBackWhatItWrote) {
  SavedContainer saved;
  saved.exclusive = CpuSet{2, 3};
  saved.cpu_quota = -1;
  saved.pool = "exclusive";
  saved.reason = "Guaranteed pod with 2 whole CPUs \"of its own\"";
  saved.requested.cpu_shares = 2048;
  saved.requested.cpuset_cpus = "";
  saved.requested.hugepage_limits["2MB"] = 1 << 21;
  saved.requirements.cpu_request = MilliCpu{2000};
  saved.requirements.memory_limit = Bytes{1 << 30};
  saved.hints.push_back({.source = "device /dev/nvme0n1", .cpus = CpuSet{0, 1}, .nodes = {}});
  const StatusOr<SavedContainer> read = DecodeSaved(EncodeSaved(saved));
  ASSERT_TRUE(read.ok()) << Describe(read.status());
  EXPECT_EQ(*read, saved);
}

TEST(SavedContainerTest, MatchesTheContainerThatItWasMadeFrom) {
  Container container;
  container.placement.exclusive = CpuSet{1};
  container.requested.cpu_shares = 1024;
  const SavedContainer saved = ToSaved(container);
  EXPECT_TRUE(Matches(saved, container));
  container.placement.cpus = CpuSet{1, 2};
  EXPECT_TRUE(Matches(saved, container)) << "where it runs is not saved";
  container.requested.cpu_shares = 2048;
  EXPECT_FALSE(Matches(saved, container));
}

TEST(SavedContainerTest, KeepsTextThatIsNoUtf8) {
  SavedContainer saved;
  saved.reason = "\xff\xfe";
  const StatusOr<SavedContainer> read = DecodeSaved(EncodeSaved(saved));
  ASSERT_TRUE(read.ok()) << Describe(read.status());
  EXPECT_EQ(read->reason, saved.reason);
}

TEST(SavedContainerTest, RefusesWhatIsNotOne) {
  EXPECT_FALSE(DecodeSaved("").ok());
  EXPECT_FALSE(DecodeSaved("{}").ok());
  EXPECT_FALSE(DecodeSaved("null").ok());
  const std::string whole = EncodeSaved(SavedContainer());
  EXPECT_TRUE(DecodeSaved(whole).ok());
  EXPECT_FALSE(DecodeSaved(whole.substr(0, whole.size() - 1)).ok());
  EXPECT_FALSE(DecodeSaved(whole + "\x1a\x01x").ok()) << "exclusive CPUs that are no list";
}

}  // namespace
}  // namespace resmgr
