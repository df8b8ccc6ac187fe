// SPDX-License-Identifier: Apache-2.0
// RuntimeClass objects, and two containerds of different releases as two runtimes of one node.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/json.h"
#include "test/e2e/kubernetes/kubernetes_fixture.h"
#include "test/support/cri_client/cri_client.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Above the kubelet's period of status updates.
constexpr seconds kSoon{60};

class RuntimeClassesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = Cluster::Start(Cluster::Runtimes::kTwo);
    ASSERT_THAT(started, IsOk());
    cluster_ = *std::move(started);
    // The API server refuses pods of classes that it does not have, and the kubelet asks it for
    // them.
    ASSERT_THAT(cluster_->CreateRuntimeClass("older", "runc"), IsOk());
    ASSERT_THAT(cluster_->CreateRuntimeClass("newer", Cluster::kNewer), IsOk());
    ASSERT_THAT(cluster_->CreateRuntimeClass("newer-second", Cluster::kNewerSecond), IsOk());
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override { ASSERT_NE(cluster_, nullptr) << "the cluster did not start"; }
  void TearDown() override {
    if (cluster_ != nullptr && HasFailure()) std::fputs(cluster_->Logs().c_str(), stderr);
  }

  static Json Pod(const std::string& runtime_class, const Json& resources) {
    Json spec = PodSpec({ContainerSpec("main", resources)});
    spec["runtimeClassName"] = runtime_class;
    return spec;
  }
  // The kubelet executes something in it each second, and ends it where that fails.
  static Json Probed(Json spec) {
    spec["volumes"] = {{{"name", "probes"}, {"emptyDir", Json::object()}}};
    Json& container = spec["containers"][0];
    container["volumeMounts"] = {{{"name", "probes"}, {"mountPath", "/probes"}}};
    container["livenessProbe"] = {
        {"exec", {{"command", {"sh", "-c", "echo probed >> /probes/log"}}}},
        {"periodSeconds", 1},
        {"timeoutSeconds", 10},
        {"failureThreshold", 1}};
    return spec;
  }
  static size_t Probes(const std::string& pod) {
    const std::string log = cluster_->FileOf(pod, "probes", "log");
    return static_cast<size_t>(std::count(log.begin(), log.end(), '\n'));
  }
  void Run(const std::vector<std::pair<std::string, Json>>& pods) {
    for (const auto& [name, spec] : pods) {
      ASSERT_THAT(cluster_->CreatePod(name, spec), IsOk());
      pods_.push_back(name);
    }
    for (const auto& [name, spec] : pods)
      ASSERT_THAT(cluster_->WaitForPod(name), IsOk());
  }
  static std::map<std::string, Cluster::Container> Containers() {
    auto containers = cluster_->Containers();
    EXPECT_THAT(containers, IsOk());
    return containers.value_or(std::map<std::string, Cluster::Container>{});
  }
  // "POD HANDLER" of each pod sandbox behind a socket.
  static std::vector<std::string> Sandboxes(const std::string& socket) {
    CriClient client(socket);
    cri::ListPodSandboxResponse list;
    EXPECT_TRUE(client.Unary("ListPodSandbox", cri::ListPodSandboxRequest(), &list).ok());
    std::vector<std::string> found;
    for (const cri::PodSandbox& pod : list.items()) {
      found.push_back(fmt::format("{} {}", pod.metadata().name().substr(sizeof("resmgr-e2e")),
                                  pod.runtime_handler()));
    }
    return found;
  }
  // The same containers on the same CPUs, never restarted, and the kubelet reports that they run.
  void ExpectUnchanged(const std::map<std::string, Cluster::Container>& before, const char* when) {
    SCOPED_TRACE(when);
    EXPECT_THAT(cluster_->WaitForNode(), IsOk());
    for (const std::string& pod : pods_)
      EXPECT_THAT(cluster_->WaitForPod(pod), IsOk());
    EXPECT_EQ(Containers(), before);
  }

  static std::unique_ptr<Cluster> cluster_;
  std::vector<std::string> pods_;
};

std::unique_ptr<Cluster> RuntimeClassesTest::cluster_;

TEST_F(RuntimeClassesTest, PodsOfTwoContainerdsOutliveRestartsOfEverything) {
  Run({{"plain", PodSpec({ContainerSpec("main", BestEffort())})},
       {"older", Probed(Pod("older", BestEffort()))},
       {"newer", Pod("newer", Guaranteed(1))},
       {"newer-second", Probed(Pod("newer-second", Burstable()))}});
  ASSERT_FALSE(HasFailure());
  Cluster& cluster = *cluster_;
  EXPECT_THAT(Sandboxes(cluster.containerd().socket()),
              UnorderedElementsAre("plain ", "older runc"));
  EXPECT_THAT(Sandboxes(cluster.newer_containerd().socket()),
              UnorderedElementsAre("newer runc", "newer-second second"));
  EXPECT_THAT(Sandboxes(cluster.RelaySocket()),
              UnorderedElementsAre("plain ", "older runc", "newer newer", "newer-second second"));
  const auto before = Containers();
  ASSERT_EQ(before.size(), 4U);
  // The one CPU that is not reserved is that of the Guaranteed pod.
  const CpuSet own = before.at("newer/main").cpus;
  EXPECT_EQ(own.size(), 1);
  EXPECT_FALSE(own.Contains(0)) << "reserved";
  for (const auto& [name, container] : before)
    EXPECT_TRUE(name == "newer/main" || !container.cpus.Intersects(own)) << name;

  ASSERT_THAT(cluster.RestartKubelet(), IsOk());
  ExpectUnchanged(before, "kubelet");
  ASSERT_THAT(cluster.RestartRelay(), IsOk());
  ExpectUnchanged(before, "cri-resmgr");
  ASSERT_THAT(cluster.newer_containerd().Restart(), IsOk());
  ExpectUnchanged(before, "newer containerd");
  ASSERT_THAT(cluster.RestartContainerd(), IsOk());
  ExpectUnchanged(before, "older containerd");
  cluster.KillRelay();
  ASSERT_THAT(cluster.newer_containerd().Restart(), IsOk());
  ASSERT_THAT(cluster.RestartContainerd(), IsOk());
  ASSERT_THAT(cluster.StartRelay(), IsOk());
  ExpectUnchanged(before, "all of them");

  // All of it still works: nothing is left of pods that are deleted.
  Run({{"later", Pod("older", Burstable())}, {"newer-later", Pod("newer", BestEffort())}});
  EXPECT_THAT(cluster.DeletePods(pods_), IsOk());
  for (Containerd* const containerd : {&cluster.containerd(), &cluster.newer_containerd()}) {
    EXPECT_THAT(WaitUntil("no pod sandbox is left", kSoon,
                          [&] { return Sandboxes(containerd->socket()).empty(); }),
                IsOk())
        << testing::PrintToString(Sandboxes(containerd->socket()));
  }
}

// Either of the runtimes may be away.
TEST_F(RuntimeClassesTest, OneRuntimeAwayIsNotNoticedByPodsOfTheOther) {
  Run({{"older", Probed(Pod("older", BestEffort()))},
       {"newer", Probed(Pod("newer", Guaranteed(1)))}});
  ASSERT_FALSE(HasFailure());
  const auto before = Containers();
  struct Case {
    Containerd& away;
    std::string other;
  };
  for (const Case& each : {Case{.away = cluster_->newer_containerd(), .other = "older"},
                           Case{.away = cluster_->containerd(), .other = "newer"}}) {
    const std::string& other = each.other;
    SCOPED_TRACE("the other one is " + other);
    each.away.Kill();
    // The kubelet reports the node as not ready; the control plane decides about the consequences.
    EXPECT_THAT(WaitUntil("the node is not ready", kSoon, [] { return !cluster_->NodeReady(); }),
                IsOk());
    const size_t probes = Probes(other);
    EXPECT_THAT(WaitUntil("probes of the other one's pods go on", kSoon,
                          [&] { return Probes(other) >= probes + 3; }),
                IsOk());
    EXPECT_EQ(Containers(), before);
    // A daemon that starts meanwhile knows the containers nevertheless.
    ASSERT_THAT(cluster_->RestartRelay(), IsOk());
    const size_t later = Probes(other);
    EXPECT_THAT(WaitUntil("probes go on with another daemon", kSoon,
                          [&] { return Probes(other) >= later + 3; }),
                IsOk());
    EXPECT_EQ(Containers(), before);
    // The kubelet starts none while it is told that a runtime is not ready, and loses none.
    const std::string meanwhile = "meanwhile-" + other;
    ASSERT_THAT(cluster_->CreatePod(meanwhile, Pod(other, BestEffort())), IsOk());
    ASSERT_THAT(each.away.Restart(), IsOk());
    EXPECT_THAT(cluster_->WaitForPod(meanwhile), IsOk());
    EXPECT_THAT(cluster_->DeletePods({meanwhile}), IsOk());
    ExpectUnchanged(before, "it is back");
  }
  EXPECT_THAT(cluster_->DeletePods(pods_), IsOk());
}

TEST_F(RuntimeClassesTest, AnUnknownHandlerIsRefusedInTheRuntimesOwnWords) {
  ASSERT_THAT(cluster_->CreateRuntimeClass("unknown", "no-such-handler"), IsOk());
  ASSERT_THAT(cluster_->CreatePod("unknown", Pod("unknown", BestEffort())), IsOk());
  EXPECT_THAT(WaitUntil("the kubelet tells why", kSoon,
                        [] {
                          const auto events =
                              cluster_->admin().Get("/api/v1/namespaces/default/events");
                          return events.ok() &&
                                 JsonText(*events).find(
                                     "no runtime for \\\"no-such-handler\\\" is configured") !=
                                     std::string::npos;
                        }),
              IsOk());
  EXPECT_THAT(cluster_->DeletePods({"unknown"}), IsOk());
  EXPECT_THAT(Sandboxes(cluster_->RelaySocket()), IsEmpty());
}

}  // namespace
}  // namespace resmgr::test
