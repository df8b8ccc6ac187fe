// SPDX-License-Identifier: Apache-2.0
// Reports about CPUs on the node and its pods, at a real API server.
#include <chrono>
#include <string>

#include "agent/topology_writer.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "test/e2e/kubernetes/kubernetes_fixture.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr char kDefinition[] = "noderesourcetopologies.topology.node.k8s.io";

// As much of the definition of NodeResourceTopology as checks what is written: quantities may be
// numbers or texts.
constexpr char kTopologyDefinition[] = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: noderesourcetopologies.topology.node.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/pull/1870"}
spec:
  group: topology.node.k8s.io
  scope: Cluster
  names:
    kind: NodeResourceTopology
    listKind: NodeResourceTopologyList
    plural: noderesourcetopologies
    singular: noderesourcetopology
    shortNames: [node-res-topo]
  versions:
  - name: v1alpha2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [zones]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          topologyPolicies: {type: array, items: {type: string}}
          attributes: &attributes
            type: array
            items:
              type: object
              required: [name, value]
              properties: {name: {type: string}, value: {type: string}}
          zones:
            type: array
            items:
              type: object
              required: [name, type]
              properties:
                name: {type: string}
                type: {type: string}
                parent: {type: string}
                attributes: *attributes
                costs:
                  type: array
                  items:
                    type: object
                    required: [name, value]
                    properties: {name: {type: string}, value: {type: integer, format: int64}}
                resources:
                  type: array
                  items:
                    type: object
                    required: [allocatable, available, capacity, name]
                    properties:
                      name: {type: string}
                      allocatable: &quantity
                        anyOf: [{type: integer}, {type: string}]
                        x-kubernetes-int-or-string: true
                      available: *quantity
                      capacity: *quantity
)";

class KubernetesReportsTest : public KubernetesTest {
 protected:
  // Without a map the node would keep the configuration of the former test.
  void SetUp() override {
    KubernetesTest::SetUp();
    Apply(kDefaultMap, Cluster::Policy());
  }
  // Over all NUMA nodes; -1 where the annotation is not there or cannot be read.
  static int CpusOfNode(const char* key) {
    const auto shown = ParseJson(cluster_->Annotation("cpus"));
    if (!shown || agent::IntAt(*shown, {"version"}) != 1) return -1;
    int sum = 0;
    for (const Json& node : (*shown)["numa"])
      sum += agent::IntAt(node, {key});
    return sum;
  }
  static Status WaitForExclusive(int cpus) {
    return WaitUntil("the node shows its exclusive CPUs", seconds(60),
                     [cpus] { return CpusOfNode("exclusive") == cpus; });
  }
  // The newest Event with that reason of this incarnation of the pod, or null.
  static Json EventOf(const std::string& uid, const std::string& reason) {
    const auto events = cluster_->admin().Get("/api/v1/namespaces/default/events");
    if (!events.ok()) return nullptr;
    Json found;
    for (const Json& event : (*events)["items"]) {
      if (agent::TextAt(event, {"involvedObject", "uid"}) == uid &&
          agent::TextAt(event, {"reason"}) == reason)
        found = event;
    }
    return found;
  }
};

TEST_F(KubernetesReportsTest, TheNodeShowsWhichCpusAreAllocated) {
  ASSERT_THAT(WaitForExclusive(0), IsOk());
  const int allocatable = CpusOfNode("allocatable");
  EXPECT_GT(allocatable, 0);
  Run({{"alone", PodSpec({ContainerSpec("main", Guaranteed(1))})}});
  ASSERT_THAT(WaitForExclusive(1), IsOk());
  EXPECT_EQ(CpusOfNode("allocatable"), allocatable);
  EXPECT_EQ(CpusOfNode("free"), allocatable - 1);
  ASSERT_THAT(cluster_->DeletePods({"alone"}), IsOk());
  pods_.clear();
  EXPECT_THAT(WaitForExclusive(0), IsOk());
  Apply(kDefaultMap, Cluster::Policy("null"));
  EXPECT_THAT(WaitUntil("the annotation goes", seconds(60),
                        [] { return cluster_->Annotation("cpus").empty(); }),
              IsOk());
}

// The sum of what schedulers see in all zones; -1 without an object.
int64_t AvailableToSchedulers(KubeClient& admin) {
  const auto topology = admin.Get(agent::TopologyPath(Cluster::kNode));
  if (!topology.ok()) return -1;
  int64_t sum = 0;
  for (const Json& zone : (*topology)["zones"])
    sum += ParseInt(agent::TextAt(zone["resources"][0], {"available"})).value_or(-1);
  return sum;
}

TEST_F(KubernetesReportsTest, SchedulersAreToldWhatWouldBeGranted) {
  KubeClient& admin = cluster_->admin();
  ASSERT_THAT(WaitForExclusive(0), IsOk());
  ASSERT_THAT(admin.Create(kDefinitions, kTopologyDefinition), IsOk());
  ASSERT_THAT(
      WaitUntil(
          "the API server serves it", seconds(60),
          [&] {
            return admin.Get("/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies").ok();
          }),
      IsOk());
  // The one that runs tries again only minutes later.
  ASSERT_THAT(cluster_->RestartAgent(), IsOk());
  const int allocatable = CpusOfNode("allocatable");
  const auto wait_for = [&](int64_t available) {
    return WaitUntil("the NodeResourceTopology", seconds(120),
                     [&] { return AvailableToSchedulers(admin) == available; });
  };
  ASSERT_THAT(wait_for(allocatable), IsOk());
  Run({{"alone", PodSpec({ContainerSpec("main", Guaranteed(1))})}});
  EXPECT_THAT(wait_for(allocatable - 1), IsOk());
  ASSERT_THAT(cluster_->DeletePods({"alone"}), IsOk());
  pods_.clear();
  EXPECT_THAT(wait_for(allocatable), IsOk());
  Apply(kDefaultMap, Cluster::Policy("null"));
  EXPECT_THAT(wait_for(-1), IsOk());
  EXPECT_THAT(admin.Delete(fmt::format("{}/{}", kDefinitions, kDefinition)), IsOk());
}

TEST_F(KubernetesReportsTest, APodThatIsRefusedHasAnEvent) {
  ASSERT_THAT(WaitForExclusive(0), IsOk());
  // Without the reserved one there are not enough CPUs for it, though the kubelet lets it in.
  const int all = CpusOfNode("allocatable") + 1;
  const auto pod =
      cluster_->CreatePod("refused", PodSpec({ContainerSpec("main", Guaranteed(all))}));
  ASSERT_THAT(pod, IsOk());
  pods_.emplace_back("refused");
  const std::string uid = agent::TextAt(*pod, {"metadata", "uid"});
  ASSERT_THAT(WaitUntil("the pod has an Event", seconds(60),
                        [&uid] { return EventOf(uid, "CPURefused").is_object(); }),
              IsOk());
  const Json event = EventOf(uid, "CPURefused");
  EXPECT_EQ(agent::TextAt(event, {"type"}), "Warning");
  EXPECT_EQ(agent::TextAt(event, {"source", "component"}), "cri-resmgr");
  EXPECT_EQ(agent::TextAt(event, {"source", "host"}), Cluster::kNode);
  EXPECT_EQ(agent::TextAt(event, {"involvedObject", "name"}),
            agent::TextAt(*pod, {"metadata", "name"}));
  EXPECT_THAT(agent::TextAt(event, {"message"}), HasSubstr("container main"));
  // The kubelet tries again, and it is the same Event.
  EXPECT_THAT(
      WaitUntil("it is counted", seconds(120),
                [&uid] { return agent::IntAt(EventOf(uid, "CPURefused"), {"count"}) >= 2; }),
      IsOk());
}

TEST_F(KubernetesReportsTest, APodThatLosesItsCpusHasAnEvent) {
  const auto pod = cluster_->CreatePod("alone", PodSpec({ContainerSpec("main", Guaranteed(1))}));
  ASSERT_THAT(pod, IsOk());
  pods_.emplace_back("alone");
  ASSERT_THAT(cluster_->WaitForPod("alone"), IsOk());
  const std::string uid = agent::TextAt(*pod, {"metadata", "uid"});
  Apply(kDefaultMap, Cluster::Policy("null"));
  EXPECT_THAT(WaitUntil("the pod has an Event", seconds(60),
                        [&uid] { return EventOf(uid, "ExclusiveCpusLost").is_object(); }),
              IsOk());
}

}  // namespace
}  // namespace resmgr::test
