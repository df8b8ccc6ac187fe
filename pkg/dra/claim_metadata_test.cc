// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/claim_metadata.h"

#include <string>

#include <gtest/gtest.h>

#include "pkg/claims/claim_names.h"
#include "pkg/dra/cdi_files.h"

namespace resmgr::dra {
namespace {

// Two devices of one request, and one of another.
Claim ThreeDevices() {
  return {.uid = "u-1",
          .namespace_name = "default",
          .name = "fast",
          .parts = {{.request = "cpus", .device = "cpu-numa-1", .node = 1, .cpus = 4},
                    {.request = "cpus", .device = "cpu-l3-8", .cpus = 1, .l3_of = 8},
                    {.request = "more", .device = "cpu-numa-0", .node = 0, .cpus = 1}},
          .driver = "cpu.example.com",
          .pools = {"worker-1", "worker-1", "worker-1"}};
}

TEST(ClaimMetadataTest, TheFileOfARequestTellsItsDevicesAndTheirCpus) {
  const ClaimGrant grant{.uid = "u-1",
                         .cpus = {CpuSet{4, 5, 6, 7}, CpuSet{8}, CpuSet{0}},
                         .seen = {CpuSet{4, 6}, CpuSet{8}, CpuSet{0}}};
  EXPECT_EQ(
      MetadataText(ThreeDevices(), grant, "cpus", 3),
      R"({"apiVersion":"metadata.resource.k8s.io/v1beta1","kind":"DeviceMetadata",)"
      R"("metadata":{"name":"fast","namespace":"default","uid":"u-1","generation":3},)"
      R"("requests":[{"name":"cpus","devices":[)"
      R"({"driver":"cpu.example.com","pool":"worker-1","name":"cpu-numa-1","attributes":)"
      R"({"resource.kubernetes.io/numaNode":{"int":1},)"
      R"("cpu.example.com/allocatedNumCPUs":{"int":4},"cpu.example.com/cpus":{"string":"4,6"}}},)"
      R"({"driver":"cpu.example.com","pool":"worker-1","name":"cpu-l3-8","attributes":)"
      R"({"cpu.example.com/cacheL3ID":{"int":8},)"
      R"("cpu.example.com/allocatedNumCPUs":{"int":1},"cpu.example.com/cpus":{"string":"8"}}}]}]})"
      "\n");
}

TEST(ClaimMetadataTest, AClaimOfATemplateHasItsNameInThePod) {
  Claim claim = ThreeDevices();
  claim.pod_claim = "cores";
  const std::string text =
      MetadataText(claim, {.uid = "u-1", .cpus = {CpuSet{4}, CpuSet{8}, CpuSet{0}}}, "more", 1);
  EXPECT_NE(text.find(R"("podClaimName":"cores","requests":[{"name":"more")"), std::string::npos)
      << text;
  EXPECT_NE(MetadataCdiSpec(claim, "/m/u-1")
                .find("/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/cores/"
                      "more\""),
            std::string::npos);
}

TEST(ClaimMetadataTest, EachRequestHasACdiDeviceThatMountsItsDirectory) {
  EXPECT_EQ(RequestsOf(ThreeDevices()), (std::vector<std::string>{"cpus", "more"}));
  EXPECT_EQ(MetadataDevice("cpu.example.com", "u-1", "more"), "cpu.example.com/metadata=u-1_more");
  EXPECT_EQ(
      MetadataCdiSpec(ThreeDevices(), "/m/u-1"),
      R"({"cdiVersion":"0.5.0","kind":"cpu.example.com/metadata","devices":[)"
      R"({"name":"u-1_cpus","containerEdits":{"mounts":[{"hostPath":"/m/u-1/cpus",)"
      R"("containerPath":"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/fast/cpus",)"
      R"("options":["ro","bind"]}]}},)"
      R"({"name":"u-1_more","containerEdits":{"mounts":[{"hostPath":"/m/u-1/more",)"
      R"("containerPath":"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/fast/more",)"
      R"("options":["ro","bind"]}]}}]})"
      "\n");
}

TEST(ClaimMetadataTest, AGenerationIsReadFromTheFileThatHasIt) {
  const std::string text =
      MetadataText(ThreeDevices(), {.uid = "u-1", .cpus = {CpuSet{4}}}, "cpus", 41);
  EXPECT_EQ(GenerationOf(text), 41);
  for (const char* const other :
       {"", "{", "[]", R"({"metadata":{"generation":"7"}})", R"({"metadata":{"generation":-7}})"})
    EXPECT_EQ(GenerationOf(other), 0) << other;
}

TEST(ClaimMetadataTest, OnlyItsOwnCdiFilesAreOfAClaim) {
  EXPECT_EQ(UidOfMetadataCdiFile(MetadataCdiFileName("u-1")), "u-1");
  EXPECT_EQ(UidOfMetadataCdiFile(MetadataCdiFileName("u-1") + ".tmp"), "u-1");
  for (const char* const other :
       {"dra.k8s.io-cpu_claim-u-1.json", "x.json", "cri-resmgr.intel.com-metadata_claim-.json",
        "cri-resmgr.intel.com-metadata_claim-../u.json"})
    EXPECT_FALSE(UidOfMetadataCdiFile(other)) << other;
}

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
