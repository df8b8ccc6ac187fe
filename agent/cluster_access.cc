// SPDX-License-Identifier: Apache-2.0
#include "agent/cluster_access.h"

#include <filesystem>

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>

#include "pkg/base/parse.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/sys/files.h"

namespace resmgr::agent {
namespace {

using Kind = ConfigNode::Kind;

constexpr size_t kMaxKubeconfig = 4 << 20;

const ConfigNode* Member(const ConfigNode& map, std::string_view key) {
  for (const ConfigNode::Entry& entry : map.entries) {
    if (entry.key == key && entry.value.kind != Kind::kNull) return &entry.value;
  }
  return nullptr;
}

// Reads the keys of one map and keeps the first error.
class Reader {
 public:
  Reader(const ConfigNode& node, std::string path) : node_(node), path_(std::move(path)) {
    if (node.kind != Kind::kMap) status_ = ErrorAt(node, path_, "must be a map");
  }

  const ConfigNode* Get(std::string_view key, Kind kind) {
    const ConfigNode* value = Member(node_, key);
    if (value == nullptr || !status_.ok()) return nullptr;
    if (value->kind == kind) return value;
    Fail(*value, key, fmt::format("must be {}", ToString(kind)));
    return nullptr;
  }
  std::string Text(std::string_view key) {
    const ConfigNode* value = Get(key, Kind::kScalar);
    return value == nullptr ? "" : value->text;
  }
  bool Bool(std::string_view key) {
    const ConfigNode* value = Get(key, Kind::kScalar);
    if (value == nullptr) return false;
    const std::optional<bool> parsed = ParseBool(value->text);
    if (!parsed) Fail(*value, key, "must be true or false");
    return parsed.value_or(false);
  }
  // Reads KEY-data, which is PEM in base64, or else KEY, which names a file.
  Pem ReadPem(const std::string& key, std::string_view directory) {
    const std::string data_key = key + "-data";
    if (const ConfigNode* data = Get(data_key, Kind::kScalar);
        data != nullptr && !data->text.empty()) {
      const std::optional<std::string> decoded = DecodeBase64(data->text);
      if (!decoded || decoded->empty()) Fail(*data, data_key, "is not base64");
      return {.data = decoded.value_or(""), .file = ""};
    }
    return {.data = "", .file = Path(key, directory)};
  }
  std::string Path(std::string_view key, std::string_view directory) {
    const std::string path = Text(key);
    return path.empty() ? "" : (std::filesystem::path(directory) / path).lexically_normal();
  }

  void Fail(const ConfigNode& at, std::string_view key, std::string_view message) {
    if (status_.ok()) status_ = ErrorAt(at, fmt::format("{}.{}", path_, key), message);
  }
  void Require(bool condition, std::string_view message) {
    if (!condition && status_.ok()) status_ = ErrorAt(node_, path_, message);
  }
  const Status& status() const { return status_; }

 private:
  const ConfigNode& node_;
  const std::string path_;
  Status status_;
};

// Checks that the URL has a scheme, a host and, if any, a valid port. libcurl checks the rest.
bool IsServerUrl(std::string_view url) {
  constexpr uint64_t kHighestPort = 65535;
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return false;
  if (url.substr(0, scheme) != "https" && url.substr(0, scheme) != "http") return false;
  const std::string_view behind = url.substr(scheme + 3);
  // Request paths are appended to the URL, so it may have no query or fragment. Names and passwords
  // have keys of their own: in the URL they would be logged.
  if (behind.find_first_of("?#@") != std::string_view::npos) return false;
  const std::string_view authority = behind.substr(0, behind.find('/'));
  // The colons of an IPv6 address are within brackets.
  const size_t host_end = authority.find(':', authority.rfind(']') + 1);
  if (authority.substr(0, host_end).empty()) return false;
  if (host_end == std::string_view::npos) return true;
  const auto port = ParseUint(authority.substr(host_end + 1));
  return port.has_value() && *port <= kHighestPort;
}

// Finds the entry with this name in root[list] and returns its member `member`.
StatusOr<const ConfigNode*> Named(const ConfigNode& root, std::string_view list,
                                  std::string_view name, std::string_view member) {
  const ConfigNode* entries = Member(root, list);
  if (entries == nullptr || entries->kind != Kind::kList) {
    return ErrorAt(entries == nullptr ? root : *entries, list, "must be a list");
  }
  for (const ConfigNode& entry : entries->items) {
    const ConfigNode* own_name = Member(entry, "name");
    if (own_name == nullptr || own_name->text != name) continue;
    const ConfigNode* value = Member(entry, member);
    if (value == nullptr) return ErrorAt(entry, list, fmt::format("{} has no {}", name, member));
    return value;
  }
  return ErrorAt(*entries, list, fmt::format("there is no \"{}\"", Printable(name)));
}

Status ReadCluster(const ConfigNode& node, std::string_view directory, ClusterAccess& access) {
  Reader reader(node, "cluster");
  access.server = reader.Text("server");
  while (access.server.ends_with('/'))
    access.server.pop_back();
  reader.Require(IsServerUrl(access.server),
                 "server must be an https:// or http:// URL without user, query or fragment");
  access.ca = reader.ReadPem("certificate-authority", directory);
  access.insecure = reader.Bool("insecure-skip-tls-verify");
  reader.Require(!access.insecure || access.ca.empty(),
                 "insecure-skip-tls-verify and certificate-authority exclude each other");
  access.tls_server_name = reader.Text("tls-server-name");
  access.proxy_url = reader.Text("proxy-url");
  return reader.status();
}

StatusOr<ExecPlugin> ReadExec(const ConfigNode& node) {
  Reader reader(node, "user.exec");
  ExecPlugin plugin;
  plugin.api_version = reader.Text("apiVersion");
  plugin.command = reader.Text("command");
  plugin.provide_cluster_info = reader.Bool("provideClusterInfo");
  reader.Require(plugin.api_version.starts_with("client.authentication.k8s.io/"),
                 "apiVersion must be of client.authentication.k8s.io");
  reader.Require(!plugin.command.empty(), "needs a command");
  reader.Require(reader.Text("interactiveMode") != "Always",
                 "interactiveMode Always: there is no terminal to answer the plugin");
  if (const ConfigNode* arguments = reader.Get("args", Kind::kList)) {
    for (const ConfigNode& argument : arguments->items)
      plugin.arguments.push_back(argument.text);
  }
  if (const ConfigNode* variables = reader.Get("env", Kind::kList)) {
    for (const ConfigNode& variable : variables->items) {
      Reader entry(variable, "user.exec.env");
      plugin.environment.emplace_back(entry.Text("name"), entry.Text("value"));
      entry.Require(!plugin.environment.back().first.empty(), "needs a name");
      RESMGR_RETURN_IF_ERROR(entry.status());
    }
  }
  RESMGR_RETURN_IF_ERROR(reader.status());
  return plugin;
}

StatusOr<UserAuth> ReadUser(const ConfigNode& node, std::string_view directory) {
  Reader reader(node, "user");
  for (const std::string_view key :
       {"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"}) {
    if (Member(node, key) != nullptr) {
      return MakeStatus(StatusCode::kUnimplemented,
                        Message(ErrorAt(node, fmt::format("user.{}", key), "is not supported")));
    }
  }
  UserAuth user;
  user.certificate = reader.ReadPem("client-certificate", directory);
  user.key = reader.ReadPem("client-key", directory);
  reader.Require(user.certificate.empty() == user.key.empty(),
                 "client-certificate and client-key go together");
  user.token = reader.Text("token");
  user.token_file = reader.Path("tokenFile", directory);
  user.username = reader.Text("username");
  user.password = reader.Text("password");
  if (const ConfigNode* exec = reader.Get("exec", Kind::kMap)) {
    RESMGR_ASSIGN_OR_RETURN(user.exec, ReadExec(*exec));
    // As in kubectl, a plugin with a relative path is below the kubeconfig's directory.
    if (user.exec->command.find('/') != std::string::npos) {
      user.exec->command =
          (std::filesystem::path(directory) / user.exec->command).lexically_normal();
    }
  }
  RESMGR_RETURN_IF_ERROR(reader.status());
  return user;
}

}  // namespace

StatusOr<ClusterAccess> ParseKubeconfig(std::string_view text, std::string_view source,
                                        std::string_view directory) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode root, ParseYaml(text, source));
  Reader top(root, "kubeconfig");
  const std::string current = top.Text("current-context");
  top.Require(!current.empty(), "has no current-context");
  RESMGR_RETURN_IF_ERROR(top.status());

  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* context_node,
                          Named(root, "contexts", current, "context"));
  Reader context(*context_node, "context");
  const std::string cluster = context.Text("cluster");
  const std::string user = context.Text("user");
  context.Require(!cluster.empty(), "needs a cluster");
  RESMGR_RETURN_IF_ERROR(context.status());

  ClusterAccess access;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* cluster_node,
                          Named(root, "clusters", cluster, "cluster"));
  RESMGR_RETURN_IF_ERROR(ReadCluster(*cluster_node, directory, access));
  if (user.empty()) return access;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* user_node, Named(root, "users", user, "user"));
  RESMGR_ASSIGN_OR_RETURN(access.user, ReadUser(*user_node, directory));
  return access;
}

StatusOr<ClusterAccess> LoadKubeconfig(const std::string& file) {
  const StatusOr<std::string> text = ReadFile(file, kMaxKubeconfig);
  if (!text.ok()) return InvalidArgument("{}", Message(text.status()));
  const std::filesystem::path path = std::filesystem::absolute(file);
  return ParseKubeconfig(*text, file, path.parent_path().string());
}

StatusOr<ClusterAccess> InClusterAccess(std::string_view host, std::string_view port,
                                        std::string_view directory) {
  if (host.empty() || port.empty()) {
    return InvalidArgument(
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
        "outside a pod -kubeconfig is needed");
  }
  const bool ipv6 = host.find(':') != std::string_view::npos;
  ClusterAccess access;
  access.server =
      ipv6 ? fmt::format("https://[{}]:{}", host, port) : fmt::format("https://{}:{}", host, port);
  access.ca.file = fmt::format("{}/ca.crt", directory);
  access.user.token_file = fmt::format("{}/token", directory);
  return access;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string dense;
  for (const char c : text)
    if (!absl::ascii_isspace(static_cast<unsigned char>(c))) dense += c;
  std::string bytes;
  // The library also accepts '.' in place of '=', and texts without padding.
  const bool whole = absl::Base64Unescape(dense, &bytes) && absl::Base64Escape(bytes) == dense;
  return whole ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace resmgr::agent
