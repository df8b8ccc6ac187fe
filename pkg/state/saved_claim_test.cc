// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_claim.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

SavedClaim Whole() {
  SavedClaim saved;
  saved.claim = {.uid = "u1",
                 .namespace_name = "default",
                 .name = "fast",
                 .parts = {{.request = "cpus", .device = "cpu-numa-1", .node = 1, .cpus = 2},
                           {.request = "more", .device = "cpu-l3-8", .cpus = 1, .l3_of = 8}},
                 .options = {.whole_cores = true,
                             .share_within_pod = true,
                             .core_type = CoreKind::kEfficient,
                             .l3 = true,
                             .avoid_siblings = true},
                 .pods = {"pod-1", "pod-2"},
                 .driver = "cpu.example.com",
                 .pools = {"worker-1", "worker-1"},
                 .pod_claim = "cpus"};
  Placement& first = saved.places.emplace_back();
  first.exclusive = {4, 5};
  first.cpus = CpuSet{4};  // one thread of the core
  first.mems = NodeSet{1};
  first.pool = "exclusive";
  first.reason = "2 CPUs";
  Placement& second = saved.places.emplace_back();
  second.exclusive = {2};
  second.cpus = second.exclusive;
  second.counted_mems = NodeSet{0};
  saved.number = 7;
  saved.carriers = {{.pod = "sandbox-1", .container = "main", .attempt = 3}, {.pod = "sandbox-2"}};
  return saved;
}

TEST(SavedClaimTest, AllOfAClaimComesBack) {
  const SavedClaim saved = Whole();
  const StatusOr<SavedClaim> again = DecodeClaim("u1", EncodeClaim(saved));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->claim, saved.claim);
  EXPECT_EQ(again->number, saved.number);
  EXPECT_EQ(again->carriers, saved.carriers);
  ASSERT_EQ(again->places.size(), 2U);
  for (size_t part = 0; part < saved.places.size(); ++part)
    EXPECT_TRUE(again->places[part].SameDecision(saved.places[part])) << part;
}

TEST(SavedClaimTest, DamagedBytesAreRefusedOrAnotherClaim) {
  const std::string whole = EncodeClaim(Whole());
  EXPECT_FALSE(DecodeClaim("u1", "").ok()) << "it has no parts";
  EXPECT_FALSE(DecodeClaim("u1", whole + "\xff").ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const StatusOr<SavedClaim> part = DecodeClaim("u1", std::string_view(whole).substr(0, size));
    if (part.ok()) EXPECT_EQ(part->places.size(), part->claim.parts.size());
  }
}

}  // namespace
}  // namespace resmgr
