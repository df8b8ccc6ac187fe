// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_names.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

constexpr char kUid[] = "8ec6fd12-bb08-4936-a857-866f50153c21";

TEST(ClaimNamesTest, DevicesAndVariablesNameTheClaim) {
  EXPECT_EQ(ClaimDevice(kCompatibleClaimKind, kUid),
            "dra.k8s.io/cpu=claim-8ec6fd12-bb08-4936-a857-866f50153c21");
  EXPECT_EQ(ClaimVariable(kUid), "DRA_CPUSET_8ec6fd12-bb08-4936-a857-866f50153c21");
  EXPECT_EQ(UidOfClaimDevice(ClaimDevice(kClaimKind, kUid)), kUid);
  EXPECT_EQ(UidOfClaimDevice(ClaimDevice(kCompatibleClaimKind, kUid)), kUid);
  EXPECT_EQ(UidOfClaimVariable(ClaimVariable(kUid)), kUid);
}

TEST(ClaimNamesTest, OtherDevicesAndVariablesNameNone) {
  for (const char* const device :
       {"", "vendor.com/gpu=claim-a", "dra.k8s.io/cpu=a", "dra.k8s.io/cpu=claim-",
        "dra.k8s.io/cpus=claim-a", "dra.k8s.io/cpu=claim-../a", "dra.k8s.io/cpu"})
    EXPECT_EQ(UidOfClaimDevice(device), std::nullopt) << device;
  for (const char* const name : {"", "DRA_CPUSET_", "DRA_CPUSET_a/b", "PATH", "XDRA_CPUSET_a"})
    EXPECT_EQ(UidOfClaimVariable(name), std::nullopt) << name;
}

// It becomes a part of a file's name.
TEST(ClaimNamesTest, UidsAreShortAndPlain) {
  EXPECT_TRUE(IsClaimUid(kUid));
  EXPECT_TRUE(IsClaimUid(std::string(64, 'a')));
  for (const std::string& uid : {std::string(), std::string("a/b"), std::string(".."),
                                 std::string("a b"), std::string("a\0b", 3), std::string(65, 'a')})
    EXPECT_FALSE(IsClaimUid(uid)) << uid;
}

}  // namespace
}  // namespace resmgr
