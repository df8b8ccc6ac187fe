// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/kube_objects.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/simulator/scenario.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class KubeObjectsTest : public testing::Test {
 protected:
  std::vector<std::string> Pods(std::string_view text, std::string_view node = {}) {
    notes_.clear();
    const auto scenario = ReadScenario(text, "s.yaml", &notes_, node);
    error_ = Message(scenario.status());
    std::vector<std::string> names;
    if (!scenario.ok()) return names;
    for (const Step& step : *scenario) {
      if (const auto* const pod = std::get_if<Manifest>(&step.action)) {
        names.push_back(pod->FullName());
        last_ = *pod;
      }
    }
    return names;
  }

  std::vector<std::string> notes_;
  std::string error_;
  Manifest last_;
};

// kubectl's output for a running pod, shortened.
constexpr std::string_view kLivePod = R"(
- apiVersion: v1
  kind: Pod
  metadata:
    annotations: {kubernetes.io/config.seen: "2026-11-20T10:00:00Z"}
    creationTimestamp: "2026-11-20T10:00:00Z"
    generateName: web-5d4f8c7b9-
    generation: 1
    labels: {app: web, pod-template-hash: 5d4f8c7b9}
    name: web-5d4f8c7b9-abcde
    namespace: shop
    ownerReferences:
    - {apiVersion: apps/v1, blockOwnerDeletion: true, controller: true, kind: ReplicaSet, name: web-5d4f8c7b9, uid: 1-2}
    resourceVersion: "12345"
    uid: 7f1e2d3c
  spec:
    affinity: {}
    containers:
    - args: [serve]
      command: [web]
      env: [{name: A, value: b}]
      image: web:1
      imagePullPolicy: IfNotPresent
      livenessProbe: {periodSeconds: 10}
      name: web
      ports: [{containerPort: 80, protocol: TCP}]
      resources: {limits: {cpu: "2", memory: 1Gi}, requests: {cpu: "2", memory: 1Gi}}
      securityContext: {runAsUser: 1000}
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
      volumeMounts: [{mountPath: /data, name: data, readOnly: true}]
    dnsPolicy: ClusterFirst
    enableServiceLinks: true
    hostNetwork: true
    imagePullSecrets: [{name: x}]
    nodeName: node-1
    nodeSelector: {a: b}
    preemptionPolicy: PreemptLowerPriority
    priority: 0
    restartPolicy: Always
    schedulerName: default-scheduler
    securityContext: {}
    serviceAccount: default
    serviceAccountName: default
    terminationGracePeriodSeconds: 30
    tolerations: [{effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists}]
    topologySpreadConstraints: []
    volumes: [{name: data, emptyDir: {}}]
  status:
    conditions: [{status: "True", type: Ready}]
    containerStatuses:
    - allocatedResources: {cpu: "2"}
      name: web
      ready: true
      resources: {limits: {cpu: "2"}}
      restartCount: 0
    hostIP: 10.0.0.1
    phase: )";

TEST_F(KubeObjectsTest, TakesTheListThatKubectlPrints) {
  std::string list = "apiVersion: v1\nitems:";
  list += kLivePod;
  list += "Running";
  list += kLivePod;
  list += "Succeeded";
  list += kLivePod;
  list +=
      "Failed\n- {kind: Service, metadata: {name: web}}\nkind: List\nmetadata: {resourceVersion: "
      "\"\"}\n";
  EXPECT_THAT(Pods(list), ElementsAre("shop/web-5d4f8c7b9-abcde")) << error_;
  EXPECT_THAT(notes_, ElementsAre("s.yaml: skipped 1 of kind Service, which places no pods here",
                                  "s.yaml: skipped 2 ended pods"));
  EXPECT_EQ(last_.containers.at(0).requirements.cpu_request.value, 2000);
  EXPECT_EQ(last_.Qos(), QosClass::kGuaranteed);
}

TEST_F(KubeObjectsTest, ExpandsReplicas) {
  const std::string sets = R"(
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, resources: {limits: {cpu: 1, memory: 1Gi}}}]}
---
kind: StatefulSet
metadata: {name: late}
spec: {ordinals: {start: 5}, template: {spec: {containers: [{name: c}]}}}
)";
  EXPECT_THAT(Pods(sets), ElementsAre("shop/db-0", "shop/db-1", "shop/db-2", "default/late-5"));
  EXPECT_THAT(notes_, IsEmpty());

  const std::string deployment = R"(
kind: Deployment
metadata: {name: web}
spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}}
)";
  const std::vector<std::string> names = Pods(deployment);
  EXPECT_THAT(names, ElementsAre(MatchesRegex("default/web-[a-z0-9]+-0"),
                                 MatchesRegex("default/web-[a-z0-9]+-1")));
  EXPECT_EQ(Pods(deployment), names) << "the same template has the same names";
  EXPECT_EQ(last_.labels.find("app")->second, "web");
  EXPECT_THAT(Pods("kind: Deployment\nmetadata: {name: no}\n"
                   "spec: {replicas: 0, template: {spec: {containers: [{name: c}]}}}\n"),
              IsEmpty());
}

TEST_F(KubeObjectsTest, KnowsAllWorkloads) {
  const std::string part = "template: {spec: {containers: [{name: c}]}}}\n---\n";
  EXPECT_THAT(
      Pods("kind: DaemonSet\nmetadata: {name: agent, namespace: kube-system}\nspec: {" + part),
      ElementsAre(MatchesRegex("kube-system/agent-[a-z0-9]+")))
      << "one on each node";
  EXPECT_THAT(
      Pods("kind: ReplicaSet\nmetadata: {name: rs}\nspec: {replicas: 2, " + part +
           "kind: ReplicationController\nmetadata: {name: rc}\nspec: {" + part),
      ElementsAre(MatchesRegex("default/rs-[a-z0-9]+-0"), MatchesRegex("default/rs-[a-z0-9]+-1"),
                  MatchesRegex("default/rc-[a-z0-9]+-0")));
  EXPECT_THAT(
      Pods("kind: Job\nmetadata: {name: one}\nspec: {" + part +
           "kind: Job\nmetadata: {name: few}\nspec: {parallelism: 5, completions: 2, " + part +
           "kind: Job\nmetadata: {name: many}\nspec: {parallelism: 2, " + part),
      ElementsAre(MatchesRegex("default/one-[a-z0-9]+-0"), MatchesRegex("default/few-[a-z0-9]+-0"),
                  MatchesRegex("default/few-[a-z0-9]+-1"), MatchesRegex("default/many-[a-z0-9]+-0"),
                  MatchesRegex("default/many-[a-z0-9]+-1")))
      << "those that run at a time";
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_THAT(Pods("kind: CronJob\nmetadata: {name: nightly, namespace: shop}\n"
                   "spec: {schedule: '0 3 * * *', jobTemplate: {spec: {parallelism: 2, "
                   "template: {spec: {containers: [{name: c}]}}}}}\n"),
              ElementsAre(MatchesRegex("shop/nightly-[a-z0-9]+-0"),
                          MatchesRegex("shop/nightly-[a-z0-9]+-1")))
      << "one run";
}

TEST_F(KubeObjectsTest, WorkloadsThatRunNothingAreNoted) {
  const std::string part = "template: {spec: {containers: [{name: c}]}}}\n";
  EXPECT_THAT(Pods("kind: Job\nmetadata: {name: a}\nspec: {suspend: true, " + part +
                   "---\nkind: Job\nmetadata: {name: b}\n"
                   "status: {conditions: [{type: Complete, status: 'True'}]}\nspec: {" +
                   part +
                   "---\nkind: CronJob\nmetadata: {name: c}\nspec: {suspend: true, jobTemplate: "
                   "{spec: {" +
                   part.substr(0, part.size() - 1) + "}}\n"),
              IsEmpty())
      << error_;
  EXPECT_THAT(notes_, ElementsAre("s.yaml: skipped 3 suspended or ended workloads"));
  const std::string owned =
      "metadata: {name: web-5d4f, ownerReferences: [{kind: Deployment, name: web, controller: "
      "true}]}\nspec: {replicas: 2, ";
  EXPECT_THAT(Pods("kind: ReplicaSet\n" + owned + part), IsEmpty()) << error_;
  EXPECT_THAT(notes_,
              ElementsAre("s.yaml: skipped 1 of kind ReplicaSet made by an owner, which counts "
                          "instead"));
}

// As `kubectl get all -A` prints it: pods come first.
constexpr std::string_view kAll = R"(
kind: List
items:
- kind: Pod
  metadata: {name: web-5d4f-abc, namespace: shop, ownerReferences: [{kind: ReplicaSet, name: web-5d4f}]}
  spec: {nodeName: n1, containers: [{name: c}]}
- kind: Pod
  metadata: {name: db-0, namespace: shop, ownerReferences: [{kind: StatefulSet, name: db}]}
  spec: {nodeName: n1, containers: [{name: c}]}
- kind: Pod
  metadata: {name: backup-29-x, namespace: shop, ownerReferences: [{kind: Job, name: backup-29}]}
  spec: {nodeName: n2, containers: [{name: c}]}
- kind: Pod
  metadata: {name: db-0, namespace: other, ownerReferences: [{kind: StatefulSet, name: db}]}
  spec: {nodeName: n1, containers: [{name: c}]}
- kind: Deployment
  metadata: {name: web, namespace: shop}
  spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}
- kind: StatefulSet
  metadata: {name: db, namespace: shop}
  spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}
- kind: CronJob
  metadata: {name: backup, namespace: shop}
  spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}
)";

TEST_F(KubeObjectsTest, PodsOfWorkloadsThatAreThereCountOnce) {
  EXPECT_THAT(Pods(kAll), ElementsAre("other/db-0", MatchesRegex("shop/web-.*-0"),
                                      MatchesRegex("shop/web-.*-1"), "shop/db-0",
                                      MatchesRegex("shop/backup-.*-0")))
      << error_;
  EXPECT_THAT(notes_, ElementsAre("s.yaml: skipped 3 of kind Pod made by an owner, which counts "
                                  "instead"));
}

TEST_F(KubeObjectsTest, OfANodeThePodsCountAndNotTheWorkloads) {
  EXPECT_THAT(Pods(kAll, "n1"), ElementsAre("shop/web-5d4f-abc", "shop/db-0", "other/db-0"))
      << error_;
  EXPECT_THAT(
      notes_,
      ElementsAre("s.yaml: skipped 1 pod not on node n1",
                  "s.yaml: skipped 3 workloads: with -node, the pods that run there count"));
}

TEST_F(KubeObjectsTest, MistakesHaveTheirPlace) {
  EXPECT_THAT(Pods("kind: Deployment\nmetadata: {name: d}\nspec: {replicas: 1}\n"), IsEmpty());
  EXPECT_THAT(error_, HasSubstr("s.yaml:1: spec.template: is missing"));
  const std::string part = "template: {spec: {containers: [{name: c}]}}}\n---\n";
  Pods("kind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 10001, " + part);
  EXPECT_THAT(error_, HasSubstr("s.yaml:3: spec.replicas: must be a number up to 10000"));
  Pods("kind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 6000, " + part +
       "kind: StatefulSet\nmetadata: {name: t}\nspec: {replicas: 6000, " + part);
  EXPECT_THAT(error_, HasSubstr("s.yaml:5: more than 10000 pods"));
  Pods("kind: List\nitems: [7]\n");
  EXPECT_THAT(error_, HasSubstr("s.yaml:2: items: must be objects"));
  Pods("kind: PodList\nitems:\n- metadata: {name: p}\n  spec: {containers: []}\n");
  EXPECT_THAT(error_, HasSubstr("s.yaml:4: spec.containers: is missing"));
}

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
  const auto claim = Must(ReadText(kLiveClaim));
  EXPECT_EQ(
      claim.name,
      (dra::ClaimName{.uid = "8ec6fd12-bb08", .namespace_name = "shop", .name = "dsp-cpus-x2y4z"}));
  const auto read = Must(dra::ParseClaimObject(claim.object, claim.name, kOurs));
  EXPECT_THAT(
      read.claim.parts,
      ElementsAre(ClaimPart{.request = "cpus", .device = "cpu-numa-1", .node = 1, .cpus = 4}));
  EXPECT_TRUE(read.claim.options.whole_cores);
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
    const auto claim = Must(ReadText(
        fmt::format("{{kind: ResourceClaim, metadata: {{name: a}}, spec: {{x: {}}}}}", text)));
    EXPECT_THAT(claim.object, HasSubstr(fmt::format("\"spec\":{{\"x\":{}}}", json)));
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
