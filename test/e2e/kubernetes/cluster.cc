// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/kubernetes/cluster.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <sys/mount.h>

#include "pkg/model/resources_annotation.h"
#include "pkg/sys/files.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr seconds kStartTimeout{90};
constexpr seconds kCertificatesTimeout{30};
constexpr std::string_view kAgentBinary =
    RESMGR_BINARY_DIR "/cmd/cri-resmgr-agent/cri-resmgr-agent";
constexpr std::string_view kWebhookBinary =
    RESMGR_BINARY_DIR "/cmd/cri-resmgr-webhook/cri-resmgr-webhook";
constexpr std::string_view kAdminToken = "admin-token";
constexpr std::string_view kKubeletToken = "kubelet-token";

// Waits for the condition, or for the end of the process that should fulfil it.
Status WaitFor(std::string_view what, ChildProcess& process,
               const std::function<bool()>& condition) {
  bool met = false;
  RESMGR_RETURN_IF_ERROR(WaitUntil(what, kStartTimeout, [&] {
    met = condition();
    return met || !process.Running();
  }));
  return met ? OkStatus() : Unavailable("{}: the process ended", what);
}

Status Write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream stream(file);
  stream << text;
  stream.close();
  return stream ? OkStatus() : Unavailable("cannot write {}", file.string());
}

// All pods are in the host's network, so no plugin is ever called.
Status WriteNetwork(const Containerd& containerd) {
  const std::filesystem::path directory = containerd.directory() / "cni";
  std::filesystem::create_directories(directory);
  return Write(
      directory / "10-none.conflist",
      R"({"cniVersion":"0.4.0","name":"none","plugins":[{"type":"bridge","bridge":"none0"}]})");
}

}  // namespace

// Each server ends and starts anew in some test.
StatusOr<int> Cluster::NewPort() {
  RESMGR_ASSIGN_OR_RETURN(ReservedPort port, ReservedPort::Create());
  return ports_.emplace_back(std::move(port)).number();
}

StatusOr<std::unique_ptr<Cluster>> Cluster::Start(Runtimes runtimes) {
  const char* programs = std::getenv("RESMGR_KUBERNETES");
  if (programs == nullptr) {
    return FailedPrecondition("RESMGR_KUBERNETES is not set: run scripts/test-kubernetes");
  }
  std::unique_ptr<Cluster> cluster(new Cluster);
  cluster->programs_ = programs;
  RESMGR_ASSIGN_OR_RETURN(cluster->containerd_, Containerd::Start());
  cluster->directory_ = cluster->containerd_->directory();
  if (runtimes == Runtimes::kTwo) RESMGR_RETURN_IF_ERROR(cluster->StartNewerContainerd());
  for (int* port : {&cluster->api_port_, &cluster->etcd_port_, &cluster->etcd_peer_port_,
                    &cluster->kubelet_port_, &cluster->webhook_port_}) {
    RESMGR_ASSIGN_OR_RETURN(*port, cluster->NewPort());
  }
  RESMGR_RETURN_IF_ERROR(cluster->WriteFiles());
  cluster->admin_ = std::make_unique<KubeClient>(cluster->Access(std::string(kAdminToken)));
  for (const auto step : {&Cluster::StartEtcd, &Cluster::StartApiServer, &Cluster::ApplyRbac,
                          &Cluster::MakeWebhookCertificates, &Cluster::StartWebhook,
                          &Cluster::RegisterWebhook, &Cluster::StartRelay, &Cluster::StartKubelet,
                          &Cluster::RotateAgentToken, &Cluster::StartAgent}) {
    if (const Status status = (cluster.get()->*step)(); !status.ok()) {
      return Annotate(status, cluster->Logs());
    }
  }
  RESMGR_RETURN_IF_ERROR(cluster->WaitForVerdict("", "", "none"));
  return cluster;
}

Status Cluster::StartNewerContainerd() {
  const char* programs = std::getenv("RESMGR_NEWER_CONTAINERD");
  if (programs == nullptr) {
    return FailedPrecondition("RESMGR_NEWER_CONTAINERD is not set: run scripts/test-kubernetes");
  }
  RESMGR_ASSIGN_OR_RETURN(newer_, Containerd::Start(programs));
  return OkStatus();
}

Cluster::~Cluster() {
  agent_.reset();
  webhook_.reset();
  kubelet_.reset();
  relay_.reset();
  api_server_.reset();
  etcd_.reset();
  // The kubelet has these in fixed places.
  for (const char* logs : {"/var/log/pods", "/var/log/containers"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(logs, ignored)) {
      if (entry.path().filename().string().find("resmgr-e2e-") != std::string::npos) {
        std::filesystem::remove_all(entry.path(), ignored);
      }
    }
  }
}

std::string Cluster::NodePath() {
  return fmt::format("/api/v1/nodes/{}", kNode);
}

std::string Cluster::WebhookAnnotation(const Json& pod) {
  return agent::TextAt(pod, {"metadata", "annotations", kResourcesAnnotation});
}

std::string Cluster::Policy(std::string_view active) {
  return fmt::format(R"({{Active: "{}", ReservedResources: {{CPU: "cpuset:0"}}}})", active);
}

agent::ClusterAccess Cluster::Access(const std::string& token) const {
  agent::ClusterAccess access;
  access.server = fmt::format("https://127.0.0.1:{}", api_port_);
  access.ca.file = Path("ca.crt");
  access.user.token = token;
  return access;
}

KubeClient Cluster::AsAgent() const {
  return KubeClient(Access(TextOf(Path("agent.token"))));
}

Status Cluster::WriteKubeconfig(const std::string& file, const std::string& user) const {
  return Write(Path(file),
               fmt::format("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                           "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                           "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', "
                           "certificate-authority: {}}}}}]\n"
                           "users: [{{name: u, user: {}}}]\n",
                           api_port_, Path("ca.crt").string(), user));
}

Status Cluster::WriteFiles() {
  const KeyPair server = authority_.Issue("localhost");
  const KeyPair signer = authority_.Issue("service-accounts");
  RESMGR_RETURN_IF_ERROR(Write(Path("ca.crt"), authority_.certificate()));
  RESMGR_RETURN_IF_ERROR(Write(Path("server.crt"), server.certificate));
  RESMGR_RETURN_IF_ERROR(Write(Path("server.key"), server.key));
  RESMGR_RETURN_IF_ERROR(Write(Path("sa.crt"), signer.certificate));
  RESMGR_RETURN_IF_ERROR(Write(Path("sa.key"), signer.key));
  RESMGR_RETURN_IF_ERROR(
      Write(Path("tokens.csv"),
            fmt::format("{},admin,1,\"system:masters\"\n{},system:node:{},2,\"system:nodes\"\n",
                        kAdminToken, kKubeletToken, kNode)));
  RESMGR_RETURN_IF_ERROR(
      WriteKubeconfig("kubelet.kubeconfig", fmt::format("{{token: {}}}", kKubeletToken)));
  RESMGR_RETURN_IF_ERROR(WriteKubeconfig("agent.kubeconfig", "{tokenFile: agent.token}"));

  // One line for each request of the agent.
  RESMGR_RETURN_IF_ERROR(
      Write(Path("audit.yaml"), fmt::format("apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                                            "rules:\n"
                                            "- {{level: Metadata, users: ['{}']}}\n"
                                            "- {{level: None}}\n",
                                            kAgentUser)));

  std::string config = "policy: " + Policy() + "\n";
  if (newer_ != nullptr) {
    config += fmt::format(
        "runtimes: {{newer: {{Socket: {}}}}}\n"
        "runtimeClasses: {{{}: {{Runtime: newer, Handler: runc}}, {}: {{Runtime: newer}}}}\n",
        newer_->socket().string(), kNewer, kNewerSecond);
  }
  RESMGR_RETURN_IF_ERROR(Write(Path("cri-resmgr.yaml"), config));

  RESMGR_RETURN_IF_ERROR(WriteNetwork(*containerd_));
  if (newer_ != nullptr) RESMGR_RETURN_IF_ERROR(WriteNetwork(*newer_));
  return Write(Path("kubelet.yaml"),
               fmt::format("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                           "address: 127.0.0.1\nport: {}\nreadOnlyPort: 0\nhealthzPort: 0\n"
                           "authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: "
                           "false}}}}\nauthorization: {{mode: AlwaysAllow}}\n"
                           "cgroupDriver: cgroupfs\ncgroupRoot: /{}\nfailSwapOn: false\n"
                           "evictionHard: {{memory.available: 1Mi, nodefs.available: 1%, "
                           "nodefs.inodesFree: 1%, imagefs.available: 1%}}\n"
                           "imageGCHighThresholdPercent: 100\nsyncFrequency: 5s\n"
                           "nodeStatusUpdateFrequency: 2s\n",
                           kubelet_port_, directory_.filename().string()));
}

StatusOr<std::unique_ptr<ChildProcess>> Cluster::Run(const std::string& name,
                                                     const std::vector<std::string>& argv) const {
  return ChildProcess::Start(argv, Path(name + ".log"));
}

Status Cluster::StartEtcd() {
  // In memory: etcd syncs each change, so on a busy disk the tests would measure the disk.
  // containerd's clean-up unmounts it.
  const std::filesystem::path data = Path("etcd");
  std::filesystem::create_directories(data);
  if (::mount("tmpfs", data.c_str(), "tmpfs", 0, "size=512m,mode=0700") != 0) {
    return ErrnoStatus(errno, "cannot mount a tmpfs for etcd");
  }
  const std::string client = fmt::format("http://127.0.0.1:{}", etcd_port_);
  const std::string peer = fmt::format("http://127.0.0.1:{}", etcd_peer_port_);
  RESMGR_ASSIGN_OR_RETURN(
      etcd_,
      Run("etcd", {"etcd", "--data-dir", data, "--listen-client-urls", client,
                   "--advertise-client-urls", client, "--listen-peer-urls", peer,
                   "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer}));
  return OkStatus();
}

Status Cluster::StartApiServer() {
  RESMGR_ASSIGN_OR_RETURN(
      api_server_,
      Run("kube-apiserver",
          {programs_ / "kube-apiserver",
           fmt::format("--etcd-servers=http://127.0.0.1:{}", etcd_port_),
           "--service-account-key-file=" + Path("sa.crt").string(),
           "--service-account-signing-key-file=" + Path("sa.key").string(),
           "--service-account-issuer=https://cluster.local", "--api-audiences=api",
           "--token-auth-file=" + Path("tokens.csv").string(), "--authorization-mode=Node,RBAC",
           fmt::format("--secure-port={}", api_port_), "--bind-address=127.0.0.1",
           "--advertise-address=127.0.0.1", "--cert-dir=" + Path("apiserver").string(),
           "--tls-cert-file=" + Path("server.crt").string(),
           "--tls-private-key-file=" + Path("server.key").string(),
           "--service-cluster-ip-range=10.0.0.0/24",
           "--audit-policy-file=" + Path("audit.yaml").string(),
           "--audit-log-path=" + Path("audit.log").string(),
           "--disable-admission-plugins=ServiceAccount"}));
  // The namespace exists once the server has set itself up.
  return WaitFor("kube-apiserver serves", *api_server_, [this] {
    return admin_->Get("/api/v1/namespaces/kube-system").ok() &&
           admin_->Get("/api/v1/namespaces/default").ok();
  });
}

Status Cluster::ApplyRbac() {
  return ApplyFile(*admin_, SamplePath("rbac-agent.yaml"));
}

Status Cluster::MakeWebhookCertificates() {
  const std::string url = fmt::format("https://127.0.0.1:{}/mutate", webhook_port_);
  return RunProgram(
      {RESMGR_SOURCE_DIR "/scripts/make-webhook-certs", "-d", Path("webhook"), "-u", url},
      Path("make-webhook-certs.log"), kCertificatesTimeout);
}

Status Cluster::StartWebhook() {
  RESMGR_ASSIGN_OR_RETURN(
      webhook_, Run("webhook", {std::string(kWebhookBinary), "-address", "127.0.0.1", "-port",
                                std::to_string(webhook_port_), "-cert-file",
                                Path("webhook/tls.crt"), "-key-file", Path("webhook/tls.key")}));
  return OkStatus();
}

Status Cluster::RegisterWebhook() {
  RESMGR_RETURN_IF_ERROR(ApplyFile(*admin_, Path("webhook/webhook-configuration.yaml")));
  return WaitFor("the API server asks the webhook", *webhook_, [this] {
    const Json spec = {{"containers", {{{"name", "c"}, {"image", "i"}}}}};
    const auto pod = CreatePod("asks", spec, DryRun::kYes);
    return pod.ok() && !WebhookAnnotation(*pod).empty();
  });
}

Status Cluster::UnregisterWebhook() {
  return admin_->Delete(fmt::format("{}/cri-resmgr-webhook", kWebhooks));
}

void Cluster::StopWebhook() {
  webhook_.reset();
}

Status Cluster::StartRelay() {
  RESMGR_ASSIGN_OR_RETURN(
      relay_, DaemonProcess::Start(
                  {"-config", Path("cri-resmgr.yaml"), "-runtime-socket", containerd_->socket(),
                   "-relay-socket", Path("relay.sock"), "-relay-dir", Path("relay-state"),
                   "-config-socket", Path("config.sock"), "-admin-socket", Path("admin.sock"),
                   "-agent-socket", Path("agent.sock")},
                  Path("cri-resmgr.log")));
  return OkStatus();
}

Status Cluster::StartKubelet() {
  for (const auto& entry : std::filesystem::directory_iterator("/sys/fs/cgroup")) {
    std::error_code ignored;  // links and directories without further cgroups
    if (!entry.is_symlink()) {
      std::filesystem::create_directory(entry.path() / directory_.filename(), ignored);
    }
  }
  RESMGR_ASSIGN_OR_RETURN(
      kubelet_,
      Run("kubelet",
          {programs_ / "kubelet", "--config=" + Path("kubelet.yaml").string(),
           "--kubeconfig=" + Path("kubelet.kubeconfig").string(),
           "--hostname-override=" + std::string(kNode), "--container-runtime=remote",
           "--container-runtime-endpoint=unix://" + Path("relay.sock").string(),
           "--root-dir=" + Path("kubelet").string(), "--cert-dir=" + Path("kubelet-pki").string(),
           "--volume-plugin-dir=" + Path("kubelet-plugins").string(),
           "--pod-infra-container-image=" + std::string(Containerd::kPauseImage)}));
  return WaitForNode();
}

Status Cluster::WaitForNode() {
  return WaitFor("the node is ready", *kubelet_, [this] { return NodeReady(); });
}

bool Cluster::NodeReady() {
  const auto node = admin_->Get(NodePath());
  if (!node.ok()) return false;
  const Json* conditions = agent::Find(*node, {"status", "conditions"});
  if (conditions == nullptr) return false;
  for (const Json& condition : *conditions) {
    if (condition["type"] == "Ready") return condition["status"] == "True";
  }
  return false;
}

Status Cluster::StartAgent() {
  ::setenv("NODE_NAME", std::string(kNode).c_str(), 1);
  RESMGR_ASSIGN_OR_RETURN(
      agent_, Run("agent", {std::string(kAgentBinary), "-kubeconfig", Path("agent.kubeconfig"),
                            "-cri-resmgr-socket", Path("config.sock"), "-agent-socket",
                            Path("agent.sock"), "-report-spread=0s"}));
  return OkStatus();
}

Status Cluster::RestartApiServer() {
  api_server_.reset();
  return StartApiServer();
}
void Cluster::KillRelay() {
  relay_->Kill();
}
Status Cluster::RestartRelay() {
  KillRelay();
  return StartRelay();
}
Status Cluster::RestartKubelet() {
  kubelet_.reset();
  return StartKubelet();
}
Status Cluster::RestartAgent() {
  agent_.reset();
  return StartAgent();
}

}  // namespace resmgr::test
