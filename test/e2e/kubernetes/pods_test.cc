// SPDX-License-Identifier: Apache-2.0
// Pods by way of the real kubelet and runtime.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "test/e2e/kubernetes/kubernetes_fixture.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(KubernetesTest, PlacesPodsOfEveryClass) {
  Apply(kDefaultMap, Cluster::Policy());
  RunOneOfEach();
  EXPECT_THAT(Containers(), SizeIs(4));
  ExpectGuaranteedAlone();
  // The init container was alone too, and handed its CPU on.
  EXPECT_THAT(cluster_->FileOf("guaranteed", "init", "cpus"),
              HasSubstr("Cpus_allowed_list:\t" +
                        Containers().at("guaranteed/main").cpus.ToString() + "\n"));
}

TEST_F(KubernetesTest, RestartsMoveNothing) {
  Apply(kDefaultMap, Cluster::Policy());
  RunOneOfEach();
  const auto before = Containers();
  ASSERT_THAT(cluster_->RestartKubelet(), IsOk());
  EXPECT_EQ(Containers(), before) << "kubelet";
  ASSERT_THAT(cluster_->RestartRelay(), IsOk());
  EXPECT_EQ(Containers(), before) << "cri-resmgr";
  ASSERT_THAT(cluster_->RestartContainerd(), IsOk());
  EXPECT_EQ(Containers(), before) << "containerd";
  // All of them still work together.
  Run({{"later", PodSpec({ContainerSpec("main", Burstable())})}});
  ExpectGuaranteedAlone();
}

// Requirements of pods: from the API server by way of the webhook to the daemon.

constexpr auto kDry = Cluster::DryRun::kYes;

// The daemon's view of a request in milli-CPU, by "POD/CONTAINER".
int RequestOf(Cluster& cluster, const std::string& what) {
  const auto explained = cluster.Ctl({"explain", "default/resmgr-e2e-" + what});
  EXPECT_THAT(explained, IsOk());
  if (!explained.ok() || explained->size() != 1) return -1;
  return agent::IntAt((*explained)[0], {"request"});
}

TEST_F(KubernetesTest, TheDaemonKnowsRequestsThatSharesDoNotTell) {
  Apply(kDefaultMap, Cluster::Policy());
  // The shares of 1m and 2m equal those without a request.
  const std::vector<int> requests = {1, 2, 3, 7, 10, 101, 128, 257, 333};
  std::vector<Json> containers;
  containers.reserve(requests.size());
  for (const int request : requests) {
    containers.push_back(
        ContainerSpec(fmt::format("m{}", request), Burstable(fmt::format("{}m", request))));
  }
  Run({{"requests", PodSpec(containers)}});
  for (const int request : requests)
    EXPECT_EQ(RequestOf(*cluster_, fmt::format("requests/m{}", request)), request);
  // A restarted daemon asks the runtime, which has kept the annotation.
  ASSERT_THAT(cluster_->RestartRelay(), IsOk());
  ASSERT_THAT(WaitUntil("the containers are taken over", std::chrono::seconds(20),
                        [&requests] {
                          const auto known = cluster_->Ctl({"containers"});
                          return known.ok() && known->size() >= requests.size();
                        }),
              IsOk());
  for (const int request : requests)
    EXPECT_EQ(RequestOf(*cluster_, fmt::format("requests/m{}", request)), request) << "restarted";
}

TEST_F(KubernetesTest, PodsCarryTheirRequirements) {
  for (const std::string cpu : {"1m", "999m", "1001m", "63999m", "64"}) {
    Json spec = PodSpec({ContainerSpec("main", Burstable(cpu))});
    spec["initContainers"] = Json::array({ContainerSpec("init", Guaranteed(2))});
    const auto pod = Must(cluster_->CreatePod("dry", spec, kDry));
    const auto annotation = ParseJson(Cluster::WebhookAnnotation(pod));
    ASSERT_TRUE(annotation) << Cluster::WebhookAnnotation(pod);
    EXPECT_EQ(*annotation, Json({{"containers", {{"main", {{"requests", {{"cpu", cpu}}}}}}},
                                 {"initContainers", {{"init", Guaranteed(2)}}}}));
  }
}

TEST_F(KubernetesTest, PodsComeIntoBeingWithoutTheWebhook) {
  const Json spec = PodSpec({ContainerSpec("main", Burstable())});
  cluster_->StopWebhook();
  const auto without = Must(cluster_->CreatePod("dry", spec, kDry));
  EXPECT_THAT(Cluster::WebhookAnnotation(without), IsEmpty());
  ASSERT_THAT(cluster_->StartWebhook(), IsOk());
  EXPECT_THAT(WaitUntil("the webhook is back", std::chrono::seconds(20),
                        [&spec] {
                          const auto pod = cluster_->CreatePod("dry", spec, kDry);
                          return pod.ok() && !Cluster::WebhookAnnotation(*pod).empty();
                        }),
              IsOk());
}

// This kube-apiserver is older than 1.21 and labels no namespaces.
TEST_F(KubernetesTest, TheWebhookIsAskedWhateverLabelsAPodHasButNotAboutTheSystem) {
  const auto asked = [](const std::string& name_space, const Json& labels) {
    const Json pod = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", {{"name", "resmgr-e2e-dry"}, {"labels", labels}}},
                      {"spec", PodSpec({ContainerSpec("main", Burstable())})}};
    const auto made = cluster_->admin().Create(
        fmt::format("/api/v1/namespaces/{}/pods?dryRun=All", name_space), JsonText(pod));
    EXPECT_THAT(made, IsOk());
    return made.ok() && !Cluster::WebhookAnnotation(*made).empty();
  };
  const Json own = {{"app.kubernetes.io/name", "cri-resmgr-webhook"}};
  EXPECT_TRUE(asked("default", Json::object()));
  EXPECT_TRUE(asked("default", own)) << "whoever writes a pod chooses its labels";
  // Labels the namespace as webhook/README.md advises.
  const Json label = {{"kubernetes.io/metadata.name", "kube-system"}};
  EXPECT_TRUE(asked("kube-system", Json::object()));
  ASSERT_THAT(cluster_->admin().MergePatch("/api/v1/namespaces/kube-system",
                                           {{"metadata", {{"labels", label}}}}),
              IsOk());
  EXPECT_THAT(WaitUntil("the namespace is left out", std::chrono::seconds(20),
                        [&asked] { return !asked("kube-system", Json::object()); }),
              IsOk());
}

TEST_F(KubernetesTest, SamplesAreWhatTheApiServerExpects) {
  for (const char* file : {"configmap-group.yaml", "configmap-node.yaml", "agent-daemonset.yaml",
                           "webhook/webhook.yaml"}) {
    EXPECT_THAT(ApplyFile(cluster_->admin(), SamplePath(file)), IsOk());
  }
  EXPECT_THAT(ApplyFile(cluster_->admin(), cluster_->WebhookFile("secret.yaml")), IsOk());
  // This configuration has the name of the registered one, which has a URL in place of a service.
  ASSERT_THAT(cluster_->UnregisterWebhook(), IsOk());
  EXPECT_THAT(ApplyFile(cluster_->admin(), SamplePath("webhook/webhook-configuration.yaml")),
              IsOk());
  EXPECT_THAT(cluster_->UnregisterWebhook(), IsOk());
  ASSERT_THAT(cluster_->RegisterWebhook(), IsOk());

  EXPECT_THAT(ApplyFile(cluster_->admin(), SamplePath("configmap-default.yaml")), IsOk());
  EXPECT_THAT(WaitUntil("the sample applies", std::chrono::seconds(20),
                        [] { return cluster_->Annotation("config-status") == "accepted"; }),
              IsOk());
  EXPECT_EQ(cluster_->Annotation("config-map"), kDefaultMap);
}

}  // namespace
}  // namespace resmgr::test
