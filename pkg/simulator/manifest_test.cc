// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/manifest.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/config/yaml_reader.h"

namespace resmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

StatusOr<Manifest> ReadPod(const std::string& text) {
  const auto document = ParseYaml(text, "pod.yaml");
  EXPECT_TRUE(document.ok()) << Describe(document.status());
  return ReadManifest(*document);
}

Manifest Good(const std::string& text) {
  const auto pod = ReadPod(text);
  EXPECT_TRUE(pod.ok()) << Describe(pod.status());
  return pod.value_or(Manifest());
}

std::string ManifestError(const std::string& text) {
  const auto pod = ReadPod(text);
  EXPECT_EQ(pod.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(pod.status()));
}

TEST(ManifestTest, ReadsWhatPlacingTakes) {
  const Manifest pod = Good(R"(
kind: Pod
metadata:
  name: server
  namespace: shop
  uid: u-1
  labels: {app: server}
  annotations: {a: "1", b: yes}
spec:
  runtimeClassName: kata
  hostNetwork: true
  tolerations: [{operator: Exists}]
  initContainers:
  - name: migrate
    resources: {limits: {memory: 64Mi}, requests: {cpu: 100m}}
  - name: proxy
    restartPolicy: Always
  containers:
  - name: main
    image: registry.example.com/main
    resources:
      limits: {cpu: "2", memory: 1Gi, hugepages-2Mi: 4Mi, example.com/nic: "1"}
  - name: log
)");
  EXPECT_EQ(pod.name, "server");
  EXPECT_EQ(pod.namespace_name, "shop");
  EXPECT_EQ(pod.uid, "u-1");
  EXPECT_EQ(pod.runtime_handler, "kata");
  EXPECT_THAT(pod.labels, ElementsAre(Pair("app", "server")));
  EXPECT_THAT(pod.annotations, ElementsAre(Pair("a", "1"), Pair("b", "yes")));
  ASSERT_EQ(pod.init_containers.size(), 2u);
  EXPECT_EQ(pod.init_containers[0].requirements,
            (Requirements{{100}, {0}, {64 << 20}, {64 << 20}}));
  EXPECT_FALSE(pod.init_containers[0].sidecar);
  EXPECT_TRUE(pod.init_containers[1].sidecar);
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].requirements, (Requirements{{2000}, {2000}, {1 << 30}, {1 << 30}}));
  EXPECT_THAT(pod.containers[0].hugepage_limits, ElementsAre(Pair("2MB", 4u << 20)));
  EXPECT_EQ(pod.containers[1].requirements, Requirements());
  EXPECT_EQ(pod.Qos(), QosClass::kBurstable);
}

TEST(ManifestTest, TheNamespaceIsDefaultWhereNoneIsGiven) {
  EXPECT_EQ(
      Good("{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}").namespace_name,
      "default");
}

TEST(ManifestTest, ThePodAsAWholeDecidesItsClass) {
  const Manifest pod = Good(
      "{kind: Pod, metadata: {name: p}, spec: {resources: {limits: {cpu: 4, memory: 1Gi}}, "
      "containers: [{name: c}]}}");
  EXPECT_EQ(pod.Qos(), QosClass::kGuaranteed);
}

// The API server's defaults: a resource that any container requests gets the sum of the containers'
// requests, another one gets the pod's limit.
TEST(ManifestTest, RequestsOfThePodComeFromItsContainers) {
  const auto with = [](const std::string& resources, const std::string& containers) {
    return Good("{kind: Pod, metadata: {name: p}, spec: {resources: {" + resources + "}, " +
                containers + "}}");
  };
  const std::string two =
      "containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}, {name: b, "
      "resources: {limits: {cpu: 2, memory: 1Gi}}}]";
  const Manifest both = with("limits: {cpu: 4, memory: 4Gi}", two);
  EXPECT_EQ(both.pod_level, (Requirements{{2500}, {4000}, {int64_t{2} << 30}, {int64_t{4} << 30}}));
  EXPECT_EQ(both.Whole(), both.pod_level);
  EXPECT_EQ(both.Qos(), QosClass::kBurstable);
  const Manifest stated = with("limits: {cpu: 4, memory: 4Gi}, requests: {cpu: 4}", two);
  EXPECT_EQ(stated.pod_level.cpu_request.value, 4000);
  EXPECT_EQ(stated.pod_level.memory_request.value, int64_t{2} << 30);
  const Manifest init = with("limits: {cpu: 4, memory: 4Gi}",
                             "initContainers: [{name: i, resources: {requests: {cpu: 3}}}], "
                             "containers: [{name: a, resources: {requests: {cpu: 1}}}]");
  EXPECT_EQ(init.pod_level, (Requirements{{3000}, {4000}, {int64_t{4} << 30}, {int64_t{4} << 30}}));
  const Manifest none = with("limits: {cpu: 4, memory: 4Gi}", "containers: [{name: a}]");
  EXPECT_EQ(none.Qos(), QosClass::kGuaranteed);
  const Manifest unlimited = with("requests: {cpu: 4}", two);
  EXPECT_EQ(unlimited.pod_level.memory_request.value, 0) << "defaulted beside limits only";
  EXPECT_EQ(unlimited.Whole().memory_request.value, int64_t{2} << 30)
      << "the kubelet counts the containers";
  EXPECT_THAT(ManifestError("{kind: Pod, metadata: {name: p}, spec: {resources: {limits: {cpu: 4}, "
                            "requests: {cpu: 1}}, " +
                            two + "}}"),
              HasSubstr("spec.resources: the containers request more CPU than their pod"));
  EXPECT_THAT(
      ManifestError("{kind: Pod, metadata: {name: p}, spec: {resources: {limits: {cpu: 2}}, " +
                    two + "}}"),
      HasSubstr("spec.resources: more CPU is requested than the limit allows"));
}

TEST(ManifestTest, ReadsWhatThePodHasAsAWhole) {
  const Manifest pod = Good(R"(
kind: Pod
metadata: {name: p}
spec:
  runtimeClassName: kata
  overhead: {cpu: 250m, memory: 120Mi}
  initContainers:
  - {name: large, resources: {limits: {cpu: 4, memory: 1Gi}}}
  - {name: mesh, restartPolicy: Always, resources: {requests: {cpu: 500m}}}
  - {name: small, resources: {limits: {cpu: 1}}}
  containers:
  - {name: a, resources: {limits: {cpu: 2, memory: 2Gi}}}
  - {name: b, resources: {requests: {cpu: 300m}}}
)");
  EXPECT_EQ(pod.overhead, (Requirements{{250}, {250}, {120 << 20}, {120 << 20}}));
  EXPECT_EQ(pod.Whole(), (Requirements{{4000}, {4000}, {int64_t{2} << 30}, {int64_t{2} << 30}}));
  const Manifest endless = Good(
      "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, resources: &r {requests: "
      "{memory: 7E}}}, {name: b, resources: *r}]}}");
  EXPECT_EQ(endless.Whole().memory_request.value, std::numeric_limits<int64_t>::max());
  const Manifest stated = Good(
      "{kind: Pod, metadata: {name: p}, spec: {resources: {limits: {cpu: 4}}, containers: [{name: "
      "c, resources: {limits: {cpu: 1}}}]}}");
  EXPECT_EQ(stated.Whole(), (Requirements{{1000}, {4000}, {}, {}}));
}

TEST(ManifestTest, RefusesWhatWouldBeDoneWithoutUnseen) {
  const auto with = [](const std::string& metadata, const std::string& spec) {
    return fmt::format("{{kind: Pod, metadata: {{name: p{}}}, spec: {{{}}}}}", metadata, spec);
  };
  const std::string c = "containers: [{name: c}]";
  EXPECT_THAT(ManifestError(with("", "containers: [{name: c, resource: {limits: {cpu: 1}}}]")),
              HasSubstr("spec.containers[0].resource: unknown key; did you mean resources?"));
  EXPECT_THAT(
      ManifestError(with("", "containers: [{name: c, resources: {limit: {cpu: 1}}}]")),
      HasSubstr("spec.containers[0].resources.limit: unknown key; known here: limits, requests"));
  EXPECT_THAT(ManifestError(with("", c + ", initContainer: []")),
              HasSubstr("did you mean initContainers"));
  EXPECT_THAT(ManifestError(with("", c + ", overheads: {}")), HasSubstr("did you mean overhead?"));
  EXPECT_THAT(ManifestError(with(", anotations: {}", c)), HasSubstr("did you mean annotations?"));
  EXPECT_THAT(ManifestError(with("", c + ", overhead: {cpu: -1}")),
              HasSubstr("spec.overhead.cpu: \"-1\""));
  EXPECT_THAT(ManifestError(with("",
                                 "resources: {limits: {cpu: 1}}, containers: [{name: c, resources: "
                                 "{limits: {cpu: 2}}}]")),
              HasSubstr("the limits of container c are above those of its pod"));
  for (const std::string& name : {std::string("Upper"), std::string("a_b"), std::string("-a"),
                                  std::string("a."), std::string(64, 'a')}) {
    EXPECT_THAT(ManifestError(with("", fmt::format("containers: [{{name: \"{}\"}}]", name))),
                HasSubstr("is not a valid name"))
        << name;
  }
}

TEST(ManifestTest, KeysThatKubernetesKnowsAreNoMistakes) {
  constexpr std::string_view kContainer =
      "image command args workingDir ports env envFrom resizePolicy restartPolicyRules "
      "volumeMounts "
      "volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath "
      "terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty";
  constexpr std::string_view kSpec =
      "activeDeadlineSeconds affinity automountServiceAccountToken dnsConfig dnsPolicy "
      "enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers "
      "hostname hostnameOverride imagePullSecrets nodeName nodeSelector os preemptionPolicy "
      "priority "
      "priorityClassName readinessGates resourceClaims restartPolicy schedulerName schedulingGates "
      "securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
      "subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes "
      "workloadRef";
  constexpr std::string_view kMetadata =
      "generateName selfLink resourceVersion generation creationTimestamp deletionTimestamp "
      "deletionGracePeriodSeconds ownerReferences finalizers managedFields";
  const auto keys = [](std::string_view words) {
    std::string text;
    for (const std::string_view word : Split(words, ' '))
      text += fmt::format(", {}: x", word);
    return text;
  };
  Good(fmt::format(
      "{{apiVersion: v1, kind: Pod, status: {{}}, metadata: {{name: p{}}}, spec: {{containers: "
      "[{{name: c{}}}]{}}}}}",
      keys(kMetadata), keys(kContainer), keys(kSpec)));
}

TEST(ManifestTest, ErrorsHaveTheirPlace) {
  const auto with_container = [](const std::string& container) {
    return "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - " + container + "\n";
  };
  EXPECT_EQ(ManifestError("kind: Pod\n"), "pod.yaml:1: metadata.name: a pod needs a name");
  EXPECT_EQ(ManifestError("kind: Pod\nmetadata: {name: p}\n"), "pod.yaml:1: spec: is missing");
  EXPECT_EQ(ManifestError("kind: Pod\nmetadata: {name: p}\nspec: {a: b}\n"),
            "pod.yaml:3: spec.containers: is missing");
  EXPECT_EQ(ManifestError("kind: Pod\nmetadata: {name: a/b}\nspec: {}\n"),
            "pod.yaml:2: metadata: \"a/b\" is not a valid name");
  EXPECT_EQ(ManifestError("kind: Pod\nmetadata: {name: a..b}\nspec: {}\n"),
            "pod.yaml:2: metadata: \"a..b\" is not a valid name");
  EXPECT_EQ(ManifestError(with_container("image: x")),
            "pod.yaml:5: spec.containers[0]: has no name");
  EXPECT_EQ(ManifestError(with_container("3")), "pod.yaml:5: spec.containers[0]: must be a map");
  EXPECT_THAT(ManifestError(with_container("name: c\n    resources: {limits: {cpu: much}}")),
              HasSubstr("pod.yaml:6: spec.containers[0].resources.limits.cpu: \"much\""));
  EXPECT_THAT(ManifestError(with_container("name: c\n    resources: {limits: {x/y: [1]}}")),
              HasSubstr("limits.x/y: must be a quantity"));
  EXPECT_THAT(ManifestError(
                  with_container("name: c\n    resources: {limits: {cpu: 1}, requests: {cpu: 2}}")),
              HasSubstr("more CPU is requested than the limit allows"));
  EXPECT_THAT(ManifestError(with_container("name: c\n  - name: c")),
              HasSubstr("pod.yaml:6: spec.containers[1]: the name \"c\" is taken"));
}

TEST(ManifestTest, ClaimsOfContainersAreThoseThatThePodNames) {
  const Manifest pod = Good(R"(
kind: Pod
metadata: {name: p, namespace: shop}
spec:
  resourceClaims:
  - {name: cpus, resourceClaimName: fast}
  - {name: gpu, resourceClaimTemplateName: one-gpu}
  - {name: more, resourceClaimTemplateName: two-cpus}
  containers:
  - {name: a, resources: {claims: [{name: cpus, request: x}, {name: cpus, request: y}, {name: gpu}]}}
  - {name: b, resources: {claims: [{name: cpus}, {name: more}]}}
  - {name: c}
status:
  resourceClaimStatuses: [{name: more, resourceClaimName: p-more-x2y4z}]
)");
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_THAT(pod.containers[0].claims, ElementsAre("shop/fast", "shop/(gpu from a template)"));
  EXPECT_THAT(pod.containers[1].claims, ElementsAre("shop/fast", "shop/p-more-x2y4z"));
  EXPECT_THAT(pod.Claims(),
              ElementsAre("shop/(gpu from a template)", "shop/fast", "shop/p-more-x2y4z"));
}

TEST(ManifestTest, MistakesInClaimsAreShownWithTheirPlace) {
  const auto with = [](std::string_view pod_claims, std::string_view claims) {
    return fmt::format(
        "kind: Pod\nmetadata: {{name: p}}\nspec:\n  resourceClaims: {}\n  containers:\n"
        "  - {{name: c, resources: {{claims: {}}}}}",
        pod_claims, claims);
  };
  EXPECT_THAT(
      ManifestError(with("[{name: cpus, resourceClaimName: x}]", "[{name: cpu}]")),
      HasSubstr("pod.yaml:4: spec.resourceClaims: has no \"cpu\", which container c names"));
  EXPECT_THAT(ManifestError(with("[{name: cpus, resourceClaimNam: x}]", "[{name: cpus}]")),
              HasSubstr("pod.yaml:4: spec.resourceClaims[0].resourceClaimNam: unknown key"));
  EXPECT_THAT(ManifestError(with("[{name: a}, {name: a}]", "[{name: a}]")),
              HasSubstr("spec.resourceClaims[1]: the name \"a\" is taken"));
  EXPECT_THAT(ManifestError(with("[{resourceClaimName: x}]", "[{name: a}]")),
              HasSubstr("spec.resourceClaims[0]: has no name"));
  EXPECT_THAT(ManifestError(with("{}", "[{name: a}]")), HasSubstr("must be a list"));
  EXPECT_THAT(ManifestError(with("[]", "[x]")),
              HasSubstr("pod.yaml:6: spec.containers[0].resources.claims: must be maps"));
  EXPECT_THAT(ManifestError(with("[]", "[{}]")), HasSubstr("one has no name"));
}

TEST(ManifestTest, AResizeChangesWhatItNames) {
  const auto document = ParseYaml("{limits: {cpu: 3}, requests: {memory: 2Gi}}", "s.yaml");
  const auto change = ReadResourceResize(*document, "resources.");
  ASSERT_TRUE(change.ok()) << Describe(change.status());
  EXPECT_EQ(Changed({{1000}, {2000}, {10}, {20}}, *change),
            (Requirements{{1000}, {3000}, {int64_t{2} << 30}, {20}}));
}

TEST(ManifestTest, AResizeNamesOnlyCpuAndMemory) {
  const auto disk = ParseYaml("{limits: {ephemeral-storage: 3}}", "s.yaml");
  EXPECT_THAT(std::string(Message(ReadResourceResize(*disk, "resources.").status())),
              HasSubstr("\"ephemeral-storage\" cannot be resized"));
  const auto claims = ParseYaml("{claims: []}", "s.yaml");
  EXPECT_THAT(std::string(Message(ReadResourceResize(*claims, "resources.").status())),
              HasSubstr("none of limits, requests"));
}

}  // namespace
}  // namespace resmgr
