// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cluster_access.h"
#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "test/e2e/kubernetes/kube_client.h"
#include "test/support/api_server/certificates.h"
#include "test/support/api_server/reserved_port.h"
#include "test/support/containerd/child_process.h"
#include "test/support/containerd/containerd.h"
#include "test/support/placement_trail/placement_trail.h"

namespace resmgr::test {

// A Kubernetes cluster of one node, all of it real: etcd, kube-apiserver, containerd with runc,
// cri-resmgr, cri-resmgr-agent with the rights of sample-configs/rbac-agent.yaml,
// cri-resmgr-webhook, and a kubelet whose runtime is cri-resmgr. There is no scheduler: pods name
// their node. Needs root; $RESMGR_KUBERNETES names the folder with kube-apiserver and kubelet, and
// $RESMGR_NEWER_CONTAINERD that of a containerd of another release than the machine's.
// Thread-compatible.
class Cluster {
 public:
  static constexpr std::string_view kNode = "resmgr-node";
  static constexpr std::string_view kMaps = "/api/v1/namespaces/kube-system/configmaps";
  static constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
  static constexpr std::string_view kWebhooks =
      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  // The agent's user: the name that its service account would have.
  static constexpr std::string_view kAgentUser =
      "system:serviceaccount:kube-system:cri-resmgr-agent";
  static std::string NodePath();
  // The section "policy" that cri-resmgr starts with, before any ConfigMap: CPU 0 is reserved.
  static std::string Policy(std::string_view active = "static");

  // kTwo: the newer containerd is a second runtime of cri-resmgr, called "newer", with the pods of
  // the handlers kNewer, an alias of its handler "runc", and kNewerSecond, its handler "second".
  // All others are the machine's own containerd's.
  enum class Runtimes { kOne, kTwo };
  static constexpr std::string_view kNewer = "newer";
  static constexpr std::string_view kNewerSecond = "second";

  // Returns when the node is ready and the agent has seen that there are no ConfigMaps.
  static StatusOr<std::unique_ptr<Cluster>> Start(Runtimes runtimes = Runtimes::kOne);

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  KubeClient& admin() { return *admin_; }
  // A client with the agent's present token.
  KubeClient AsAgent() const;
  Containerd& containerd() { return *containerd_; }
  // Only with Runtimes::kTwo.
  Containerd& newer_containerd() { return *newer_; }
  std::string RelaySocket() const { return Path("relay.sock"); }

  // kill -9, then a new one.
  Status RestartApiServer();
  Status RestartContainerd() { return containerd_->Restart(); }
  // kill -9 alone; StartRelay() starts another one.
  void KillRelay();
  Status StartRelay();
  Status RestartRelay();
  Status RestartKubelet();
  // Whether the node is ready, by the kubelet's report.
  bool NodeReady();
  Status WaitForNode();
  Status RestartAgent();
  // A stopped one still has its connections.
  void StopAgent();
  void ContinueAgent();
  // Ends its connections to the API server, without either side's knowledge; how many there were.
  int CutAgent();
  // The agent's resident memory in KiB.
  int64_t AgentMemory() const;

  // The agent's token is one of its service account's, in a file, and good for as long as a secret
  // exists. This deletes the secret; kube-apiserver may remember the token for ten seconds.
  Status RevokeAgentToken();
  // Puts another one in its place, then revokes it.
  Status RotateAgentToken();
  // etcd forgets all changes so far.
  Status CompactEtcd();

  // Creates the map or replaces its section "policy"; returns its new version.
  StatusOr<std::string> SetMap(const std::string& name, const std::string& policy);
  // The same with sections in the form of `data`; other sections of the map stay.
  StatusOr<std::string> SetSections(const std::string& name, const Json& sections);
  Status DeleteMap(const std::string& name);
  // "": no group.
  Status SetGroup(const std::string& group);
  // "" where there is none; the key without its domain.
  std::string Annotation(const std::string& key);
  // Values of the same version of the node, with spaces between them.
  std::string Annotations(const std::vector<std::string>& keys);
  // Waits until cri-resmgr's verdict on this map is on the node. kInternal: it is another one.
  Status WaitForVerdict(const std::string& map, const std::string& version,
                        const std::string& status);
  // Waits until the node shows that this policy, from this source, is in force.
  Status WaitForPolicy(const std::string& policy, const std::string& source);

  enum class DryRun { kNo, kYes };
  // The pod as the API server stored it.
  StatusOr<Json> CreatePod(const std::string& name, const Json& spec, DryRun dry_run = DryRun::kNo);
  // An object of node.k8s.io that names the handler.
  Status CreateRuntimeClass(const std::string& name, std::string_view handler);
  // Waits until all of the pod's containers run.
  Status WaitForPod(const std::string& name);
  // Returns when the kubelet has ended them.
  Status DeletePods(const std::vector<std::string>& names);
  struct Container {
    std::string id;
    int restarts = 0;
    CpuSet cpus;  // that its first process may use, by the kernel

    friend bool operator==(const Container&, const Container&) = default;
  };
  // The containers of all pods at all runtimes, by "POD/CONTAINER". An error if one does not run.
  StatusOr<std::map<std::string, Container>> Containers();

  // The output of cri-resmgr-ctl.
  StatusOr<Json> Ctl(std::vector<std::string> arguments) const;
  // The grants of all running containers by "POD/CONTAINER"; empty under the null policy.
  StatusOr<Grants> Granted() const;
  // The text that a pod wrote into a file of an emptyDir.
  std::string FileOf(const std::string& pod, const std::string& volume, const std::string& file);

  // The annotation of the webhook, "" if it was not called.
  static std::string WebhookAnnotation(const Json& pod);
  void StopWebhook();
  Status StartWebhook();
  Status RegisterWebhook();
  Status UnregisterWebhook();

  // Every request that the agent has made, as audit.k8s.io/v1 Events, one for each stage: a watch
  // has no answer before something happens.
  std::vector<Json> Audit() const;
  std::string AgentSocket() const { return Path("agent.sock"); }
  std::string WebhookFile(std::string_view name) const { return Path("webhook") / name; }
  std::string AgentLog() const;
  std::string Logs() const;

 private:
  Cluster() = default;

  StatusOr<int> NewPort();
  Status WriteFiles();
  Status StartEtcd();
  Status StartApiServer();
  Status ApplyRbac();
  Status MakeWebhookCertificates();
  Status StartNewerContainerd();
  Status StartKubelet();
  Status StartAgent();
  StatusOr<std::unique_ptr<ChildProcess>> Run(const std::string& name,
                                              const std::vector<std::string>& argv) const;
  agent::ClusterAccess Access(const std::string& token) const;
  // `user` in flow style.
  Status WriteKubeconfig(const std::string& file, const std::string& user) const;
  std::filesystem::path Path(std::string_view name) const { return directory_ / name; }

  std::filesystem::path directory_;
  std::filesystem::path programs_;
  std::vector<ReservedPort> ports_;
  int api_port_ = 0;
  int etcd_port_ = 0;
  int etcd_peer_port_ = 0;
  int kubelet_port_ = 0;
  int webhook_port_ = 0;
  int agent_tokens_ = 0;  // number of tokens so far
  const TestAuthority authority_;
  std::unique_ptr<Containerd> containerd_;
  // Its pods are below the cgroups of the first one, whose end is after its own.
  std::unique_ptr<Containerd> newer_;
  std::unique_ptr<ChildProcess> etcd_;
  std::unique_ptr<ChildProcess> api_server_;
  std::unique_ptr<KubeClient> admin_;
  std::unique_ptr<DaemonProcess> relay_;
  std::unique_ptr<ChildProcess> kubelet_;
  std::unique_ptr<ChildProcess> agent_;
  std::unique_ptr<ChildProcess> webhook_;
};

// Creates every object of a multi-document YAML file; those that exist already are left as they
// are.
Status ApplyFile(const KubeClient& client, const std::string& path);
// The path of a file of sample-configs/.
std::string SamplePath(std::string_view file);
// A configuration file as the `data` of a ConfigMap.
StatusOr<Json> SectionsOf(const std::string& path);

}  // namespace resmgr::test
