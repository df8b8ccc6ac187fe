// SPDX-License-Identifier: Apache-2.0
// The rights of the agent at the API server, and of the daemon by way of the agent.
#include <set>
#include <string>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "pkg/base/json.h"
#include "test/e2e/kubernetes/kubernetes_fixture.h"
#include "test/support/agent_client/agent_client.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kRules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
constexpr const char* kLabel = "/metadata/labels/cri-resource-manager.intel.com~1e2e";

Json NodeBy(AgentClient& client) {
  const auto node = client.Node();
  EXPECT_THAT(node, IsOk());
  return node.value_or(Json());
}

// Nodes have no namespace, and events are written in all of them.
bool IsEverywhere(const std::string& resource) {
  return resource.starts_with("nodes") || resource == "events";
}

std::string Right(const std::string& verb, const std::string& group, const std::string& resource,
                  const std::string& name_space) {
  return fmt::format("{} {}{} in {}", verb, group, resource,
                     name_space.empty() ? "all" : name_space);
}

// The rights of this user by the API server's answer. Every user may ask about their own.
std::set<std::string> RightsOf(const KubeClient& user) {
  std::set<std::string> rights;
  for (const std::string name_space : {"default", "kube-system", "kube-public"}) {
    const auto review = user.Create(kRules, JsonText({{"apiVersion", "authorization.k8s.io/v1"},
                                                      {"kind", "SelfSubjectRulesReview"},
                                                      {"spec", {{"namespace", name_space}}}}));
    EXPECT_THAT(review, IsOk());
    if (!review.ok()) continue;
    for (const Json& rule : (*review)["status"]["resourceRules"]) {
      for (const std::string group : rule["apiGroups"]) {
        if (group == "authorization.k8s.io") continue;
        for (const std::string resource : rule["resources"]) {
          for (const std::string verb : rule["verbs"]) {
            rights.insert(Right(verb, group, resource, IsEverywhere(resource) ? "" : name_space));
          }
        }
      }
    }
  }
  return rights;
}

// Those for groups that this API server has: it knows no claims, and NodeResourceTopologies in
// another test alone.
std::set<std::string> Served(std::set<std::string> rights) {
  std::erase_if(rights, [](const std::string& right) {
    return right.find("resource.k8s.io") != std::string::npos ||
           right.find("topology.node.k8s.io") != std::string::npos;
  });
  return rights;
}

// The agent's requests in the API server's own log; `refused`: only those that were refused.
std::set<std::string> Used(const Cluster& cluster, bool refused) {
  constexpr int kForbidden = 403;
  std::set<std::string> rights;
  for (const Json& entry : cluster.Audit()) {
    if ((agent::IntAt(entry, {"responseStatus", "code"}) == kForbidden) != refused) continue;
    const std::string subresource = agent::TextAt(entry, {"objectRef", "subresource"});
    const std::string group = agent::TextAt(entry, {"objectRef", "apiGroup"});
    if (group == "authorization.k8s.io") continue;
    std::string resource = agent::TextAt(entry, {"objectRef", "resource"});
    if (!subresource.empty()) resource += "/" + subresource;
    rights.insert(
        Right(agent::TextAt(entry, {"verb"}), group, resource,
              IsEverywhere(resource) ? "" : agent::TextAt(entry, {"objectRef", "namespace"})));
  }
  return rights;
}

TEST_F(KubernetesTest, TheDaemonReachesItsNodeThroughTheAgent) {
  AgentClient node(cluster_->AgentSocket());
  EXPECT_EQ(node.Health(""), "");
  EXPECT_EQ(node.Health("config-status"), "");
  EXPECT_EQ(agent::TextAt(NodeBy(node), {"metadata", "name"}), Cluster::kNode);

  grpc::Status status = node.Patch("add", kLabel, "\"here\"");
  EXPECT_TRUE(status.ok()) << status.error_message();
  const auto labelled = Must(cluster_->admin().Get(Cluster::NodePath()));
  EXPECT_EQ(agent::TextAt(labelled, {"metadata", "labels", "cri-resource-manager.intel.com/e2e"}),
            "here");
  EXPECT_TRUE(node.Patch("remove", kLabel, "").ok());

  status = node.SetCapacity("resource-policy.nri.io/e2e", "7");
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(agent::TextAt(NodeBy(node), {"status", "capacity", "resource-policy.nri.io/e2e"}), "7");
  // The kubelet makes it allocatable.
  EXPECT_THAT(WaitUntil("it is allocatable", std::chrono::seconds(20),
                        [&node] {
                          return agent::TextAt(NodeBy(node), {"status", "allocatable",
                                                              "resource-policy.nri.io/e2e"}) == "7";
                        }),
              IsOk());
}

TEST_F(KubernetesTest, NodeShowsThePolicyInForce) {
  Apply(kDefaultMap, Cluster::Policy("static-plus"));
  EXPECT_THAT(cluster_->WaitForPolicy("static-plus", "agent"), IsOk());
  Apply(kDefaultMap, Cluster::Policy("no-such-policy"), "rejected");
  EXPECT_THAT(cluster_->WaitForPolicy("static-plus", "agent"), IsOk());
  Apply(kDefaultMap, Cluster::Policy());
  EXPECT_THAT(cluster_->WaitForPolicy("static", "agent"), IsOk());
  // Another agent shows it again where somebody took it away.
  const Json gone = {{"cri-resource-manager.intel.com/policy", nullptr}};
  ASSERT_THAT(
      cluster_->admin().MergePatch(Cluster::NodePath(), {{"metadata", {{"annotations", gone}}}}),
      IsOk());
  ASSERT_THAT(cluster_->RestartAgent(), IsOk());
  EXPECT_THAT(cluster_->WaitForPolicy("static", "agent"), IsOk());
}

TEST_F(KubernetesTest, TheDaemonHasNoOtherKeys) {
  AgentClient node(cluster_->AgentSocket());
  const Json before = NodeBy(node);
  for (const char* path :
       {"/metadata/labels/kubernetes.io~1role", "/metadata/annotations/example.com~1x",
        "/metadata/labels/cri-resource-manager.intel.com~1group", "/metadata/labels/plain",
        "/metadata/annotations/cri-resource-manager.intel.com~1config-status",
        "/spec/unschedulable", "/spec/providerID", "/metadata/finalizers"}) {
    EXPECT_EQ(node.Patch("add", path, "\"x\"").error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << path;
  }
  EXPECT_EQ(
      node.Patch("add", "/spec/taints", R"([{"key":"a.io/b","effect":"NoExecute"}])").error_code(),
      grpc::StatusCode::PERMISSION_DENIED);
  for (const char* name : {"cpu", "example.com/device", "pods"})
    EXPECT_EQ(node.SetCapacity(name, "1").error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << name;
  const Json after = NodeBy(node);
  EXPECT_EQ(after["metadata"]["labels"], before["metadata"]["labels"]);
  EXPECT_EQ(after["spec"], before["spec"]);
}

TEST_F(KubernetesTest, AgentHasTheRightsThatItNeedsAndNoOthers) {
  AgentClient node(cluster_->AgentSocket());
  EXPECT_THAT(node.Node(), IsOk());
  EXPECT_TRUE(node.Patch("add", kLabel, "\"x\"").ok());
  EXPECT_TRUE(node.Patch("remove", kLabel, "").ok());
  EXPECT_TRUE(node.SetCapacity("resource-policy.nri.io/e2e", "1").ok());
  // The first rejection is an Event, another one changes it.
  for (const char* policy : {"no-such-policy", "nor-such-a-policy"}) {
    Apply(kDefaultMap, Cluster::Policy(policy), "rejected");
  }
  EXPECT_THAT(WaitUntil("the event is written", std::chrono::seconds(30),
                        [] { return Used(*cluster_, false).contains("patch events in all"); }),
              IsOk());
  EXPECT_THAT(Used(*cluster_, true), IsEmpty()) << "refused";
  EXPECT_THAT(Served(Used(*cluster_, false)),
              ElementsAreArray(Served(RightsOf(cluster_->AsAgent()))));
}

// The rights work with names of maps, as the comment in the sample promises.
TEST_F(KubernetesTest, NamesOfMapsAreEnoughForTheAgent) {
  constexpr std::string_view kRole =
      "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/cri-resmgr-agent";
  const auto role = Must(cluster_->admin().Get(kRole));
  Json rules = role["rules"];
  rules[0]["resourceNames"] = {kDefaultMap, kGroupMap, kNodeMap};
  ASSERT_THAT(cluster_->admin().MergePatch(kRole, {{"rules", rules}}), IsOk());
  ASSERT_THAT(cluster_->RestartAgent(), IsOk());
  Apply(kDefaultMap, Cluster::Policy() + " # by name");
  EXPECT_THAT(cluster_->SetGroup("e2e"), IsOk());
  Apply(kGroupMap, Cluster::Policy() + " # by name");
  EXPECT_THAT(cluster_->admin().MergePatch(kRole, {{"rules", role["rules"]}}), IsOk());
}

}  // namespace
}  // namespace resmgr::test
