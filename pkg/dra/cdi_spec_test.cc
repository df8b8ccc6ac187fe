// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/cdi_spec.h"

#include <gtest/gtest.h>

#include "pkg/claims/claim_names.h"

namespace resmgr::dra {
namespace {

constexpr char kUid[] = "8ec6fd12-bb08-4936-a857-866f50153c21";

TEST(CdiSpecTest, GivesContainersTheVariable) {
  EXPECT_EQ(CdiSpec(kCompatibleClaimKind, kUid, CpuSet{8, 9, 10, 11}),
            "{\"cdiVersion\":\"0.5.0\",\"kind\":\"dra.k8s.io/cpu\",\"devices\":[{\"name\":"
            "\"claim-8ec6fd12-bb08-4936-a857-866f50153c21\",\"containerEdits\":{\"env\":["
            "\"DRA_CPUSET_8ec6fd12-bb08-4936-a857-866f50153c21=8-11\"]}}]}\n");
}

TEST(CdiSpecTest, FilesNameTheClaim) {
  EXPECT_EQ(CdiFileName(kCompatibleClaimKind, kUid),
            "dra.k8s.io-cpu_claim-8ec6fd12-bb08-4936-a857-866f50153c21.json");
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind}) {
    EXPECT_EQ(UidOfCdiFile(CdiFileName(kind, kUid)), kUid);
    EXPECT_EQ(UidOfCdiFile(CdiFileName(kind, kUid) + ".tmp"), kUid) << "being written";
  }
  for (const char* const name :
       {"", "nvidia.json", "dra.k8s.io-cpu_claim-.json", "dra.k8s.io-cpu_claim-a.yaml",
        "dra.k8s.io-gpu_claim-a.json", "dra.k8s.io-cpu_claim-a b.json", ".json", ".tmp"})
    EXPECT_EQ(UidOfCdiFile(name), std::nullopt) << name;
}

}  // namespace
}  // namespace resmgr::dra
