// SPDX-License-Identifier: Apache-2.0
// Changes of the cluster's objects by tests, and their questions to its node.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/cri-resmgr-ctl/cli.h"
#include "pkg/base/json.h"
#include "pkg/sys/unique_fd.h"
#include "test/e2e/kubernetes/cluster.h"

namespace resmgr::test {
namespace {

using std::chrono::seconds;

constexpr seconds kPodTimeout{90};
constexpr seconds kRunTimeout{5};
// How fast verdicts are is the matter of one test; elsewhere a machine may be so busy that its API
// server answers no client for half a minute.
constexpr seconds kVerdictTimeout{120};
constexpr std::string_view kDomain = "cri-resource-manager.intel.com/";
constexpr std::string_view kPodPrefix = "resmgr-e2e-";

std::string PodPath(std::string_view name) {
  return fmt::format("{}/{}{}", Cluster::kPods, kPodPrefix, name);
}

// Faults that tests cause in the agent, its token, its connections and etcd.

constexpr std::string_view kSecrets = "/api/v1/namespaces/kube-system/secrets";
constexpr std::string_view kAgentTokens =
    "/api/v1/namespaces/kube-system/serviceaccounts/cri-resmgr-agent/token";

std::string TokenSecret(int number) {
  return fmt::format("agent-token-{}", number);
}

// A request to etcd's own JSON interface.
StatusOr<Json> CallEtcd(int port, std::string_view path, const Json& body) {
  agent::ClusterAccess access;
  access.server = fmt::format("http://127.0.0.1:{}", port);
  return KubeClient(access).Create(path, JsonText(body));
}

// The port of the peer of a TCP socket over IPv4, 0 for everything else.
int PeerPort(int fd) {
  sockaddr_in peer{};
  socklen_t size = sizeof(peer);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  return peer.sin_family == AF_INET ? ntohs(peer.sin_port) : 0;
}

}  // namespace

StatusOr<std::string> Cluster::SetMap(const std::string& name, const std::string& policy) {
  return SetSections(name, {{"policy", policy}});
}

StatusOr<std::string> Cluster::SetSections(const std::string& name, const Json& sections) {
  const Json data = {{"data", sections}};
  StatusOr<Json> map = admin_->MergePatch(fmt::format("{}/{}", kMaps, name), data);
  if (map.status().code() == StatusCode::kNotFound) {
    Json object = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}};
    object.update(data);
    map = admin_->Create(kMaps, JsonText(object));
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
  return Annotations({key});
}

std::string Cluster::Annotations(const std::vector<std::string>& keys) {
  const auto node = admin_->Get(NodePath());
  if (!node.ok()) return "";
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) {
    values.push_back(agent::TextAt(*node, {"metadata", "annotations", std::string(kDomain) + key}));
  }
  return fmt::format("{}", fmt::join(values, " "));
}

Status Cluster::WaitForVerdict(const std::string& map, const std::string& version,
                               const std::string& status) {
  std::string seen;
  Status waited = WaitUntil("a verdict", kVerdictTimeout, [&] {
    seen = Annotations({"config-map", "config-version", "config-status"});
    return seen == fmt::format("{} {} {}", map, version, status);
  });
  if (waited.ok()) return waited;
  return Internal("verdict \"{}\" in place of \"{} {} {}\" ({})", seen, map, version, status,
                  Annotation("config-error"));
}

Status Cluster::WaitForPolicy(const std::string& policy, const std::string& source) {
  std::string seen;
  Status waited = WaitUntil("the policy on the node", kVerdictTimeout, [&] {
    seen = Annotations({"policy", "policy-source"});
    return seen == fmt::format("{} {}", policy, source);
  });
  if (waited.ok()) return waited;
  return Internal("the node shows \"{}\" in place of \"{} {}\"", seen, policy, source);
}

StatusOr<Json> Cluster::CreatePod(const std::string& name, const Json& spec, DryRun dry_run) {
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", fmt::format("{}{}", kPodPrefix, name)}}},
                    {"spec", spec}};
  const std::string_view query = dry_run == DryRun::kYes ? "?dryRun=All" : "";
  return admin_->Create(fmt::format("{}{}", kPods, query), JsonText(pod));
}

Status Cluster::CreateRuntimeClass(const std::string& name, std::string_view handler) {
  const Json object = {{"apiVersion", "node.k8s.io/v1"},
                       {"kind", "RuntimeClass"},
                       {"metadata", {{"name", name}}},
                       {"handler", handler}};
  return admin_->Create("/apis/node.k8s.io/v1/runtimeclasses", JsonText(object)).status();
}

Status Cluster::WaitForPod(const std::string& name) {
  std::string last;
  const Status status = WaitUntil("the pod runs", kPodTimeout, [&] {
    const auto now = admin_->Get(PodPath(name));
    if (!now.ok()) return false;
    const Json* statuses = agent::Find(*now, {"status", "containerStatuses"});
    last = JsonText((*now)["status"]);
    if (statuses == nullptr) return false;
    return std::all_of(statuses->begin(), statuses->end(),
                       [](const Json& container) { return container["ready"] == true; });
  });
  return status.ok() ? status : Annotate(status, last);
}

Status Cluster::DeletePods(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    RESMGR_RETURN_IF_ERROR(admin_->Delete(PodPath(name)));
  for (const std::string& name : names) {
    RESMGR_RETURN_IF_ERROR(WaitUntil("the pod is gone", kPodTimeout, [&] {
      return admin_->Get(PodPath(name)).status().code() == StatusCode::kNotFound;
    }));
  }
  return OkStatus();
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
      // A container is ready as soon as its start is answered.
      std::optional<CpuSet> cpus;
      (void)WaitUntil("the container's process runs", kRunTimeout, [&] {
        cpus = containerd_->AllowedCpus(container.id);
        if (!cpus && newer_ != nullptr) cpus = newer_->AllowedCpus(container.id);
        return cpus.has_value();
      });
      if (!cpus) return FailedPrecondition("{} does not run", name);
      container.cpus = *cpus;
      containers[name.substr(kPodPrefix.size()) + "/" + agent::TextAt(status, {"name"})] =
          container;
    }
  }
  return containers;
}

StatusOr<Json> Cluster::Ctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"cri-resmgr-ctl", "-socket", Path("admin.sock")});
  arguments.insert(arguments.end(), {"-o", "json"});
  std::vector<const char*> argv;
  argv.reserve(arguments.size());
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  if (RunCli(static_cast<int>(argv.size()), argv.data(), "test", AllCommands(), out, err) != 0) {
    return FailedPrecondition("{}", err.str());
  }
  std::optional<Json> json = ParseJson(out.str());
  if (!json) return Internal("cri-resmgr-ctl: not JSON: {}", out.str());
  return *std::move(json);
}

StatusOr<Grants> Cluster::Granted() const {
  RESMGR_ASSIGN_OR_RETURN(const Json status, Ctl({"status"}));
  Grants grants;
  if (agent::TextAt(status, {"policy"}) == "null") return grants;
  RESMGR_ASSIGN_OR_RETURN(const Json containers, Ctl({"containers"}));
  for (const Json& container : containers) {
    if (agent::TextAt(container, {"state"}) != "running") continue;
    const auto set = [&container](std::string_view key) {
      return CpuSet::Parse(agent::TextAt(container, {key})).value_or(CpuSet());
    };
    const std::string pod = agent::TextAt(container, {"pod"}).substr(kPodPrefix.size());
    grants[pod + "/" + agent::TextAt(container, {"name"})] = {set("cpus"), set("exclusive")};
  }
  return grants;
}

std::string Cluster::FileOf(const std::string& pod, const std::string& volume,
                            const std::string& file) {
  const auto object = admin_->Get(PodPath(pod));
  if (!object.ok()) return "";
  return TextOf(Path("kubelet/pods") / agent::TextAt(*object, {"metadata", "uid"}) /
                "volumes/kubernetes.io~empty-dir" / volume / file);
}

std::string Cluster::AgentLog() const {
  return TextOf(Path("agent.log"));
}

std::string Cluster::Logs() const {
  std::string logs;
  for (const char* name : {"etcd", "kube-apiserver", "cri-resmgr", "kubelet", "agent", "webhook"}) {
    logs += fmt::format("--- {}\n{}\n", name, LastLines(Path(std::string(name) + ".log")));
  }
  return logs;
}

std::vector<Json> Cluster::Audit() const {
  std::vector<Json> entries;
  std::istringstream lines(TextOf(Path("audit.log")));
  for (std::string line; std::getline(lines, line);) {
    if (std::optional<Json> entry = ParseJson(line)) entries.push_back(*std::move(entry));
  }
  return entries;
}

Status Cluster::RevokeAgentToken() {
  return admin_->Delete(fmt::format("{}/{}", kSecrets, TokenSecret(agent_tokens_)));
}

Status Cluster::RotateAgentToken() {
  const std::string name = TokenSecret(agent_tokens_ + 1);
  const Json secret = {{"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", name}}}};
  RESMGR_RETURN_IF_ERROR(admin_->Create(kSecrets, JsonText(secret)).status());
  const Json request = {
      {"apiVersion", "authentication.k8s.io/v1"},
      {"kind", "TokenRequest"},
      {"spec", {{"boundObjectRef", {{"apiVersion", "v1"}, {"kind", "Secret"}, {"name", name}}}}}};
  RESMGR_ASSIGN_OR_RETURN(const Json reply, admin_->Create(kAgentTokens, JsonText(request)));
  // Replaces the file as the kubelet does, so that the agent never sees half of a token.
  const std::string fresh = Path("agent.token.new");
  std::ofstream(fresh) << agent::TextAt(reply, {"status", "token"});
  std::error_code error;
  std::filesystem::rename(fresh, Path("agent.token"), error);
  if (error) return Unavailable("agent.token: {}", error.message());
  // The first token replaces none, and a token that is revoked already is not an error.
  if (agent_tokens_ > 0) RevokeAgentToken().IgnoreError();
  ++agent_tokens_;
  return OkStatus();
}

void Cluster::StopAgent() {
  agent_->Signal(SIGSTOP);
}
void Cluster::ContinueAgent() {
  agent_->Signal(SIGCONT);
}

int Cluster::CutAgent() {
  const pid_t pid = agent_->pid();
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  int cut = 0;
  std::error_code ignored;  // files come and go
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid), ignored)) {
    const int theirs = std::stoi(entry.path().filename().string());
    const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), theirs, 0)));
    if (fd.valid() && PeerPort(fd.get()) == api_port_ && ::shutdown(fd.get(), SHUT_RDWR) == 0)
      ++cut;
  }
  return cut;
}

int64_t Cluster::AgentMemory() const {
  std::ifstream file(fmt::format("/proc/{}/status", agent_->pid()));
  for (std::string word; file >> word;) {
    int64_t value = 0;
    if (word == "VmRSS:" && file >> value) return value;
  }
  return 0;
}

Status Cluster::CompactEtcd() {
  // Any key will do: the answer tells the revision.
  RESMGR_ASSIGN_OR_RETURN(const Json range,
                          CallEtcd(etcd_port_, "/v3/kv/range", {{"key", "AA=="}}));
  const std::string revision = agent::TextAt(range, {"header", "revision"});
  return CallEtcd(etcd_port_, "/v3/kv/compaction", {{"revision", revision}}).status();
}

}  // namespace resmgr::test
