// SPDX-License-Identifier: Apache-2.0
// Faults that tests cause in the agent, its token, its connections and etcd.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pkg/base/json.h"
#include "pkg/sys/unique_fd.h"
#include "test/e2e/kubernetes/cluster.h"

namespace resmgr::test {
namespace {

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
  // The first token replaces none, and a token that is revoked already is no error.
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
