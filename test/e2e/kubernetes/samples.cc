// SPDX-License-Identifier: Apache-2.0
// Manifests of sample-configs/ on a real API server.
#include <cctype>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>

#include "pkg/sys/files.h"
#include "test/e2e/kubernetes/cluster.h"

namespace resmgr::test {
namespace {

constexpr size_t kMaxFile = 1 << 20;

// Where objects of a kind are created; "{}" is the namespace.
const std::map<std::string, std::string>& Collections() {
  static const auto* const kCollections = new std::map<std::string, std::string>{
      {"ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterroles"},
      {"ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"},
      {"ConfigMap", "/api/v1/namespaces/{}/configmaps"},
      {"DaemonSet", "/apis/apps/v1/namespaces/{}/daemonsets"},
      {"Deployment", "/apis/apps/v1/namespaces/{}/deployments"},
      {"MutatingWebhookConfiguration", std::string(Cluster::kWebhooks)},
      {"Namespace", "/api/v1/namespaces"},
      {"NetworkPolicy", "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"},
      // policy/v1 came with 1.21.
      {"PodDisruptionBudget", "/apis/policy/v1beta1/namespaces/{}/poddisruptionbudgets"},
      {"Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles"},
      {"RoleBinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"},
      {"Secret", "/api/v1/namespaces/{}/secrets"},
      {"Service", "/api/v1/namespaces/{}/services"},
      {"ServiceAccount", "/api/v1/namespaces/{}/serviceaccounts"},
  };
  return *kCollections;
}

// The value of a key at the given indentation, "" without it.
std::string Value(const std::string& document, const std::string& line_start) {
  std::smatch match;
  const std::regex line("(^|\n)" + line_start + ": *([^\n]*)");
  return std::regex_search(document, match, line) ? match[2].str() : "";
}

Status CreateDocument(const KubeClient& client, std::string document) {
  const std::string kind = Value(document, "kind");
  if (kind.empty()) return OkStatus();  // only comments
  const auto collection = Collections().find(kind);
  if (collection == Collections().end()) return InvalidArgument("where do {}s belong?", kind);
  const std::string path =
      fmt::format(fmt::runtime(collection->second), Value(document, "  namespace"));
  if (kind == "PodDisruptionBudget") {
    document = std::regex_replace(document, std::regex("policy/v1"), "policy/v1beta1");
  }
  const Status status = client.Create(path, document).status();
  // 409: the object exists already.
  return status.code() == StatusCode::kAborted ? OkStatus() : status;
}

}  // namespace

std::string SamplePath(std::string_view file) {
  return fmt::format("{}/sample-configs/{}", RESMGR_SOURCE_DIR, file);
}

StatusOr<Json> SectionsOf(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxFile));
  Json sections = Json::object();
  std::string section;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool starts = !line.empty() && std::isalpha(static_cast<unsigned char>(line[0])) != 0;
    if (starts) {
      section = line.substr(0, line.find(':'));
      sections[section] = "";
    } else if (!section.empty()) {
      sections[section].get_ref<std::string&>() += line + "\n";
    }
  }
  return sections;
}

Status ApplyFile(const KubeClient& client, const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxFile));
  constexpr std::string_view kSeparator = "\n---\n";
  while (!text.empty()) {
    const size_t end = text.find(kSeparator);
    const std::string document = text.substr(0, end);
    text.erase(0, end == std::string::npos ? end : end + kSeparator.size());
    if (const Status status = CreateDocument(client, document); !status.ok()) {
      return Annotate(status, path);
    }
  }
  return OkStatus();
}

}  // namespace resmgr::test
