// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/claim_document.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/simulator/scenario.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const dra::Driver kOurs{.name = "cpu.cri-resmgr.intel.com"};

StatusOr<ClaimDocument> ReadText(std::string_view text) {
  const auto document = ParseYaml(text, "c.yaml");
  EXPECT_TRUE(document.ok()) << Describe(document.status());
  return ReadClaim(*document);
}

std::string ClaimError(std::string_view text) {
  return std::string(Message(ReadText(text).status()));
}

// kubectl's output for a claim in use, shortened.
constexpr std::string_view kLiveClaim = R"(
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  annotations: {resource.kubernetes.io/pod-claim-name: cpus}
  creationTimestamp: "2026-11-20T10:00:00Z"
  finalizers: [resource.kubernetes.io/delete-protection]
  generateName: dsp-cpus-
  name: dsp-cpus-x2y4z
  namespace: shop
  ownerReferences: [{apiVersion: v1, kind: Pod, name: dsp, uid: 1-2}]
  resourceVersion: "12345"
  uid: 8ec6fd12-bb08
spec:
  devices:
    requests:
    - name: cpus
      exactly: {allocationMode: ExactCount, count: 1, deviceClassName: x, capacity: {requests: {a/cpu: "4"}}}
status:
  allocation:
    devices:
      config:
      - opaque:
          driver: cpu.cri-resmgr.intel.com
          parameters: {apiVersion: cri-resource-manager.intel.com/v1, kind: CpuClaim, wholeCores: true}
        requests: [cpus]
        source: FromClaim
      results:
      - consumedCapacity: {cpu.cri-resmgr.intel.com/cpu: 4}
        device: cpu-numa-1
        driver: cpu.cri-resmgr.intel.com
        pool: worker-1
        request: cpus
        shareID: 5f0c
  reservedFor: [{name: dsp, resource: pods, uid: 1-2}]
)";

TEST(ClaimDocumentTest, TheDriverReadsWhatKubectlPrints) {
  const auto claim = ReadText(kLiveClaim);
  ASSERT_TRUE(claim.ok()) << Describe(claim.status());
  EXPECT_EQ(
      claim->name,
      (dra::ClaimName{.uid = "8ec6fd12-bb08", .namespace_name = "shop", .name = "dsp-cpus-x2y4z"}));
  const auto read = dra::ParseClaimObject(claim->object, claim->name, kOurs);
  ASSERT_TRUE(read.ok()) << Describe(read.status());
  EXPECT_THAT(
      read->claim.parts,
      ElementsAre(ClaimPart{.request = "cpus", .device = "cpu-numa-1", .node = 1, .cpus = 4}));
  EXPECT_TRUE(read->claim.options.whole_cores);
}

TEST(ClaimDocumentTest, AClaimThatAUserWritesNeedsOnlyAName) {
  const auto claim = ReadText("{kind: ResourceClaim, metadata: {name: fast}}");
  const auto again = ReadText("{kind: ResourceClaim, metadata: {name: fast}}");
  const auto other = ReadText("{kind: ResourceClaim, metadata: {name: slow}}");
  ASSERT_TRUE(claim.ok() && again.ok() && other.ok());
  EXPECT_EQ(claim->name.namespace_name, "default");
  EXPECT_EQ(claim->name.uid, again->name.uid);
  EXPECT_NE(claim->name.uid, other->name.uid);
  EXPECT_EQ(dra::ParseClaimObject(claim->object, claim->name, kOurs).status().code(),
            StatusCode::kFailedPrecondition)
      << "it is not allocated";
}

TEST(ClaimDocumentTest, MistakesAreShownWithTheirPlace) {
  EXPECT_THAT(ClaimError("{kind: ResourceClaim}"),
              HasSubstr("c.yaml:1: metadata.name: a ResourceClaim needs a name"));
  EXPECT_THAT(ClaimError("kind: ResourceClaim\nmetadata: {name: A}"),
              HasSubstr("c.yaml:2: metadata: \"A\" is not a valid name"));
  EXPECT_THAT(ClaimError("kind: ResourceClaim\nmetadata: {name: a, uid: x/y}"),
              HasSubstr("metadata.uid: \"x/y\" is not a UID"));
  EXPECT_THAT(ClaimError("{kind: ResourceClaim, metadata: {name: a}, statuss: {}}"),
              HasSubstr("statuss: unknown key"));
  const auto with = [](std::string_view result) {
    return fmt::format(
        "kind: ResourceClaim\nmetadata: {{name: a}}\n"
        "status: {{allocation: {{devices: {{results: {}}}}}}}",
        result);
  };
  EXPECT_THAT(ClaimError(with("[{consumedCapacty: {}}]")),
              HasSubstr("c.yaml:3: status.allocation.devices.results[0].consumedCapacty: unknown "
                        "key; did you mean consumedCapacity?"));
  EXPECT_THAT(ClaimError(with("[x]")), HasSubstr("results[0]: must be a map"));
  EXPECT_THAT(ClaimError(with("x")), HasSubstr("results: must be a list"));
}

// Texts in quotes stay texts, so that the driver judges what the API server would give it.
TEST(ClaimDocumentTest, OnlyPlainTruthValuesAreTruthValues) {
  for (const auto& [text, json] :
       {std::pair{"true", "true"}, {"\"true\"", "\"true\""}, {"yes", "\"yes\""}, {"1", "\"1\""}}) {
    const auto claim = ReadText(
        fmt::format("{{kind: ResourceClaim, metadata: {{name: a}}, spec: {{x: {}}}}}", text));
    ASSERT_TRUE(claim.ok());
    EXPECT_THAT(claim->object, HasSubstr(fmt::format("\"spec\":{{\"x\":{}}}", json)));
  }
}

// The steps as "claim NAME" and "pod NAME".
std::vector<std::string> Steps(std::string_view text, std::vector<std::string>& notes,
                               std::string_view node = {}) {
  std::vector<std::string> steps;
  const auto scenario = ReadScenario(text, "s.yaml", &notes, node);
  EXPECT_TRUE(scenario.ok()) << Describe(scenario.status());
  if (!scenario.ok()) return steps;
  for (const Step& step : *scenario) {
    if (const auto* const claim = std::get_if<ClaimDocument>(&step.action))
      steps.push_back("claim " + claim->name.ToString());
    if (const auto* const pod = std::get_if<Manifest>(&step.action))
      steps.push_back("pod " + pod->FullName());
  }
  for (std::string& note : NotesOnClaims(*scenario))
    notes.push_back(std::move(note));
  return steps;
}

constexpr std::string_view kList = R"(
kind: List
items:
- {kind: Pod, metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c}]}}
- {kind: ResourceClaim, metadata: {name: a},
   status: {allocation: {devices: {results: [{driver: d, pool: n1}]}}}}
- {kind: ResourceClaim, metadata: {name: b},
   status: {allocation: {devices: {results: [{driver: d, pool: n2}]}}}}
- {kind: ResourceClaim, metadata: {name: c}}
)";

TEST(ClaimDocumentTest, ClaimsOfAListComeBeforeItsPods) {
  std::vector<std::string> notes;
  EXPECT_THAT(Steps(kList, notes), ElementsAre("claim default/a", "claim default/b",
                                               "claim default/c", "pod default/p"));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(ClaimDocumentTest, ClaimsOfOtherNodesAreLeftOut) {
  std::vector<std::string> notes;
  EXPECT_THAT(Steps(kList, notes, "n1"), ElementsAre("claim default/a", "pod default/p"));
  EXPECT_THAT(notes, ElementsAre("s.yaml: skipped 2 claims without a device of node n1"));
}

TEST(ClaimDocumentTest, ClaimsThatOnlyPodsNameAreNoted) {
  const std::string pod =
      "kind: Pod\nmetadata: {name: p}\nspec:\n"
      "  resourceClaims: [{name: x, resourceClaimName: other}]\n"
      "  containers: [{name: c, resources: {claims: [{name: x}]}}]\n";
  std::vector<std::string> notes;
  Steps(pod, notes);
  EXPECT_THAT(notes, IsEmpty()) << "a scenario without claims has none to miss";
  Steps(pod + "---\n" + std::string(kList), notes);
  EXPECT_THAT(notes,
              ElementsAre("containers carry 1 claim not in the scenario, left out: default/other"));
}

}  // namespace
}  // namespace resmgr
