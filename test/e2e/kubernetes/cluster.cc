// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/kubernetes/cluster.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "pkg/sys/unique_fd.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr seconds kStartTimeout{90};
constexpr seconds kVerdictTimeout{30};
constexpr std::string_view kDomain = "cri-resource-manager.intel.com/";
constexpr std::string_view kAgentBinary =
    RESMGR_BINARY_DIR "/cmd/cri-resmgr-agent/cri-resmgr-agent";
constexpr std::string_view kAdminToken = "admin-token";
constexpr std::string_view kKubeletToken = "kubelet-token";
constexpr std::string_view kAgentToken = "agent-token";

std::string NodePath() {
  return fmt::format("/api/v1/nodes/{}", Cluster::kNode);
}

// One that nobody has now.
int FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), plain, size) != 0 || ::getsockname(fd.get(), plain, &size) != 0) return 0;
  return ntohs(address.sin_port);
}

// Waits for the condition, or the end of the process that is to bring it about.
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

}  // namespace

StatusOr<std::unique_ptr<Cluster>> Cluster::Start() {
  const char* programs = std::getenv("RESMGR_KUBERNETES");
  if (programs == nullptr) {
    return FailedPrecondition("RESMGR_KUBERNETES is not set: run scripts/test-kubernetes");
  }
  std::unique_ptr<Cluster> cluster(new Cluster);
  cluster->programs_ = programs;
  RESMGR_ASSIGN_OR_RETURN(cluster->containerd_, Containerd::Start());
  cluster->directory_ = cluster->containerd_->directory();
  cluster->api_port_ = FreePort();
  cluster->etcd_port_ = FreePort();
  RESMGR_RETURN_IF_ERROR(cluster->WriteFiles());
  cluster->admin_ = std::make_unique<KubeClient>(cluster->Access(std::string(kAdminToken)));
  for (const auto step : {&Cluster::StartEtcd, &Cluster::StartApiServer, &Cluster::ApplyRbac,
                          &Cluster::StartRelay, &Cluster::StartKubelet, &Cluster::StartAgent}) {
    if (const Status status = (cluster.get()->*step)(); !status.ok()) {
      return Annotate(status, cluster->Logs());
    }
  }
  RESMGR_RETURN_IF_ERROR(cluster->WaitForVerdict("", "", "none"));
  return cluster;
}

Cluster::~Cluster() {
  agent_.reset();
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
  return KubeClient(Access(std::string(kAgentToken)));
}

Status Cluster::WriteKubeconfig(const std::string& file, const std::string& token) const {
  return Write(Path(file),
               fmt::format("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                           "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                           "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', "
                           "certificate-authority: {}}}}}]\n"
                           "users: [{{name: u, user: {{token: {}}}}}]\n",
                           api_port_, Path("ca.crt").string(), token));
}

Status Cluster::WriteFiles() {
  const KeyPair server = authority_.Issue("localhost");
  const KeyPair signer = authority_.Issue("service-accounts");
  RESMGR_RETURN_IF_ERROR(Write(Path("ca.crt"), authority_.certificate()));
  RESMGR_RETURN_IF_ERROR(Write(Path("server.crt"), server.certificate));
  RESMGR_RETURN_IF_ERROR(Write(Path("server.key"), server.key));
  RESMGR_RETURN_IF_ERROR(Write(Path("sa.crt"), signer.certificate));
  RESMGR_RETURN_IF_ERROR(Write(Path("sa.key"), signer.key));
  // The agent is who its service account would be.
  RESMGR_RETURN_IF_ERROR(
      Write(Path("tokens.csv"),
            fmt::format("{},admin,1,\"system:masters\"\n{},system:node:{},2,\"system:nodes\"\n"
                        "{},system:serviceaccount:kube-system:cri-resmgr-agent,3,"
                        "\"system:serviceaccounts\"\n",
                        kAdminToken, kKubeletToken, kNode, kAgentToken)));
  RESMGR_RETURN_IF_ERROR(WriteKubeconfig("kubelet.kubeconfig", std::string(kKubeletToken)));
  RESMGR_RETURN_IF_ERROR(WriteKubeconfig("agent.kubeconfig", std::string(kAgentToken)));

  RESMGR_RETURN_IF_ERROR(Write(Path("cri-resmgr.yaml"), "policy: " + Policy() + "\n"));

  // All pods are in the host's network, so no plugin is ever called.
  std::filesystem::create_directories(Path("cni"));
  RESMGR_RETURN_IF_ERROR(Write(
      Path("cni/10-none.conflist"),
      R"({"cniVersion":"0.4.0","name":"none","plugins":[{"type":"bridge","bridge":"none0"}]})"));
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
                           FreePort(), directory_.filename().string()));
}

StatusOr<std::unique_ptr<ChildProcess>> Cluster::Run(const std::string& name,
                                                     const std::vector<std::string>& argv) const {
  return ChildProcess::Start(argv, Path(name + ".log"));
}

Status Cluster::StartEtcd() {
  const std::string client = fmt::format("http://127.0.0.1:{}", etcd_port_);
  const std::string peer = fmt::format("http://127.0.0.1:{}", FreePort());
  RESMGR_ASSIGN_OR_RETURN(
      etcd_,
      Run("etcd", {"etcd", "--data-dir", Path("etcd"), "--listen-client-urls", client,
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
           "--disable-admission-plugins=ServiceAccount"}));
  // The namespace is there once the server has set up all that it needs itself.
  return WaitFor("kube-apiserver serves", *api_server_, [this] {
    return admin_->Get("/api/v1/namespaces/kube-system").ok() &&
           admin_->Get("/api/v1/namespaces/default").ok();
  });
}

Status Cluster::ApplyRbac() {
  return ApplySample(*admin_, "rbac-agent.yaml");
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
    std::error_code ignored;  // links and what cannot have more cgroups
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
  return WaitFor("the node is ready", *kubelet_, [this] {
    const auto node = admin_->Get(NodePath());
    if (!node.ok()) return false;
    const Json* conditions = agent::Find(*node, {"status", "conditions"});
    if (conditions == nullptr) return false;
    for (const Json& condition : *conditions) {
      if (condition["type"] == "Ready") return condition["status"] == "True";
    }
    return false;
  });
}

Status Cluster::StartAgent() {
  ::setenv("NODE_NAME", std::string(kNode).c_str(), 1);
  RESMGR_ASSIGN_OR_RETURN(
      agent_, Run("agent", {std::string(kAgentBinary), "-kubeconfig", Path("agent.kubeconfig"),
                            "-cri-resmgr-socket", Path("config.sock"), "-agent-socket",
                            Path("agent.sock")}));
  return OkStatus();
}

Status Cluster::RestartApiServer() {
  api_server_.reset();
  return StartApiServer();
}
Status Cluster::RestartRelay() {
  relay_->Kill();
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

StatusOr<std::string> Cluster::SetMap(const std::string& name, const std::string& policy) {
  const Json data = {{"data", {{"policy", policy}}}};
  StatusOr<Json> map = admin_->MergePatch(fmt::format("{}/{}", kMaps, name), data);
  if (map.status().code() == StatusCode::kNotFound) {
    Json object = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}};
    object.update(data);
    map = admin_->Create(kMaps, agent::ToText(object));
  }
  RESMGR_RETURN_IF_ERROR(map.status());
  return agent::TextAt(*map, {"metadata", "resourceVersion"});
}

Status Cluster::DeleteMap(const std::string& name) {
  return admin_->Delete(fmt::format("{}/{}", kMaps, name));
}

Status Cluster::SetGroup(const std::string& group) {
  Json labels = Json::object();
  labels[std::string(kDomain) + "group"] = group.empty() ? Json(nullptr) : Json(group);
  return admin_->MergePatch(NodePath(), {{"metadata", {{"labels", labels}}}}).status();
}

std::string Cluster::Annotation(const std::string& key) {
  const auto node = admin_->Get(NodePath());
  return node.ok() ? agent::TextAt(*node, {"metadata", "annotations", std::string(kDomain) + key})
                   : "";
}

Status Cluster::WaitForVerdict(const std::string& map, const std::string& version,
                               const std::string& status) {
  std::string seen;
  const Status waited = WaitUntil("a verdict", kVerdictTimeout, [&] {
    seen = fmt::format("{} {} {}", Annotation("config-map"), Annotation("config-version"),
                       Annotation("config-status"));
    return seen == fmt::format("{} {} {}", map, version, status);
  });
  if (waited.ok()) return waited;
  return Internal("verdict \"{}\" in place of \"{} {} {}\" ({})", seen, map, version, status,
                  Annotation("config-error"));
}

Status Cluster::RunPod(const std::string& name, const Json& spec) {
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", "resmgr-e2e-" + name}}},
                    {"spec", spec}};
  RESMGR_RETURN_IF_ERROR(admin_->Create(kPods, agent::ToText(pod)).status());
  std::string last;
  const Status status = WaitUntil("the pod runs", kStartTimeout, [&] {
    const auto now = admin_->Get(fmt::format("{}/resmgr-e2e-{}", kPods, name));
    if (!now.ok()) return false;
    const Json* statuses = agent::Find(*now, {"status", "containerStatuses"});
    last = agent::ToText((*now)["status"]);
    if (statuses == nullptr) return false;
    return std::all_of(statuses->begin(), statuses->end(),
                       [](const Json& container) { return container["ready"] == true; });
  });
  return status.ok() ? status : Annotate(status, last);
}

Status Cluster::DeletePod(const std::string& name) {
  const std::string path = fmt::format("{}/resmgr-e2e-{}", kPods, name);
  RESMGR_RETURN_IF_ERROR(admin_->Delete(path));
  return WaitUntil("the pod is gone", kStartTimeout,
                   [&] { return admin_->Get(path).status().code() == StatusCode::kNotFound; });
}

StatusOr<std::map<std::string, Cluster::Container>> Cluster::Containers() {
  RESMGR_ASSIGN_OR_RETURN(const Json pods, admin_->Get(kPods));
  std::map<std::string, Container> containers;
  for (const Json& pod : pods["items"]) {
    const std::string name = agent::TextAt(pod, {"metadata", "name"});
    const Json* statuses = agent::Find(pod, {"status", "containerStatuses"});
    if (statuses == nullptr) return FailedPrecondition("{} has no containers", name);
    for (const Json& status : *statuses) {
      constexpr std::string_view kScheme = "containerd://";
      Container container;
      container.id = agent::TextAt(status, {"containerID"});
      if (container.id.starts_with(kScheme)) container.id.erase(0, kScheme.size());
      container.restarts = agent::IntAt(status, {"restartCount"});
      const auto cpus = containerd_->AllowedCpus(container.id);
      if (!cpus) return FailedPrecondition("{} does not run", name);
      container.cpus = *cpus;
      constexpr std::string_view kPrefix = "resmgr-e2e-";
      containers[name.substr(kPrefix.size()) + "/" + agent::TextAt(status, {"name"})] = container;
    }
  }
  return containers;
}

std::string Cluster::Logs() const {
  std::string logs;
  for (const char* name : {"etcd", "kube-apiserver", "cri-resmgr", "kubelet", "agent"}) {
    logs += fmt::format("--- {}\n{}\n", name, LastLines(Path(std::string(name) + ".log")));
  }
  return logs;
}

}  // namespace resmgr::test
