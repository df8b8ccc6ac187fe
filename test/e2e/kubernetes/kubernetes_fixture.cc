// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/kubernetes/kubernetes_fixture.h"

#include <cstdio>
#include <utility>

namespace resmgr::test {

using testing::Contains;

Json ContainerSpec(const std::string& name, const Json& resources) {
  return {{"name", name},
          {"image", Containerd::kBusyboxImage},
          {"imagePullPolicy", "Never"},
          {"command", {"sleep", "100000"}},
          {"resources", resources}};
}

Json PodSpec(const std::vector<Json>& containers) {
  // With a grace period of 0 the API server would forget a pod before the kubelet has ended it.
  return {{"nodeName", Cluster::kNode},
          {"hostNetwork", true},
          {"automountServiceAccountToken", false},
          {"enableServiceLinks", false},
          {"terminationGracePeriodSeconds", 1},
          {"tolerations", {{{"operator", "Exists"}}}},
          {"containers", containers}};
}

Json Guaranteed(int cpus) {
  const Json amount = {{"cpu", std::to_string(cpus)}, {"memory", "32Mi"}};
  return {{"requests", amount}, {"limits", amount}};
}

Json Burstable(const std::string& cpu) {
  return {{"requests", {{"cpu", cpu}}}};
}

Json BestEffort() {
  return Json::object();
}

const std::string KubernetesTest::kNodeMap =
    "cri-resmgr-config.node." + std::string(Cluster::kNode);
std::unique_ptr<Cluster> KubernetesTest::cluster_;

void KubernetesTest::SetUpTestSuite() {
  auto started = Cluster::Start();
  ASSERT_THAT(started, IsOk());
  cluster_ = *std::move(started);
}

void KubernetesTest::TearDown() {
  if (cluster_ == nullptr) return;
  if (HasFailure()) std::fputs(cluster_->Logs().c_str(), stderr);
  EXPECT_THAT(cluster_->DeletePods(pods_), IsOk());
  EXPECT_THAT(cluster_->SetGroup(""), IsOk());
  for (const std::string& map : {std::string(kDefaultMap), std::string(kGroupMap), kNodeMap})
    cluster_->DeleteMap(map).IgnoreError();
  EXPECT_THAT(cluster_->WaitForVerdict("", "", "none"), IsOk());
}

void KubernetesTest::Run(const std::map<std::string, Json>& pods) {
  for (const auto& [name, spec] : pods) {
    ASSERT_THAT(cluster_->CreatePod(name, spec), IsOk());
    pods_.push_back(name);
  }
  for (const auto& [name, spec] : pods)
    ASSERT_THAT(cluster_->WaitForPod(name), IsOk());
}

void KubernetesTest::RunOneOfEach() {
  Json with_init = PodSpec({ContainerSpec("main", Guaranteed(1))});
  with_init["initContainers"] = Json::array({ContainerSpec("init", Guaranteed(1))});
  with_init["volumes"] = {{{"name", "init"}, {"emptyDir", Json::object()}}};
  Json& init = with_init["initContainers"][0];
  init["volumeMounts"] = {{{"name", "init"}, {"mountPath", "/init"}}};
  init["command"] = {"sh", "-c", "grep Cpus_allowed_list /proc/self/status > /init/cpus"};
  Run({{"guaranteed", with_init},
       {"burstable", PodSpec({ContainerSpec("a", Burstable()), ContainerSpec("b", BestEffort())})},
       {"besteffort", PodSpec({ContainerSpec("main", BestEffort())})}});
}

std::map<std::string, Cluster::Container> KubernetesTest::Containers() {
  auto containers = cluster_->Containers();
  EXPECT_THAT(containers, IsOk());
  return containers.value_or(std::map<std::string, Cluster::Container>{});
}

Grants KubernetesTest::Granted() {
  auto grants = cluster_->Granted();
  EXPECT_THAT(grants, IsOk());
  return grants.value_or(Grants{});
}

void KubernetesTest::Apply(const std::string& map, const std::string& policy,
                           const std::string& status) {
  const auto version = cluster_->SetMap(map, policy);
  ASSERT_THAT(version, IsOk());
  ASSERT_THAT(cluster_->WaitForVerdict(map, *version, status), IsOk());
}

void KubernetesTest::ExpectGuaranteedAlone() {
  const auto containers = Containers();
  ASSERT_THAT(containers, Contains(testing::Key("guaranteed/main")));
  const CpuSet own = containers.at("guaranteed/main").cpus;
  EXPECT_EQ(own.size(), 1);
  EXPECT_FALSE(own.Contains(0)) << "reserved";
  for (const auto& [name, container] : containers) {
    if (name == "guaranteed/main") continue;
    EXPECT_FALSE(container.cpus.Intersects(own)) << name << " on " << container.cpus.ToString();
  }
}

void KubernetesTest::ExpectSameContainers(const std::map<std::string, Cluster::Container>& before,
                                          const std::map<std::string, Cluster::Container>& after) {
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, container] : before) {
    ASSERT_TRUE(after.contains(name)) << name;
    EXPECT_EQ(after.at(name).id, container.id) << name;
    EXPECT_EQ(after.at(name).restarts, 0) << name;
  }
}

}  // namespace resmgr::test
