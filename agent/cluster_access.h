// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr::agent {

// A certificate or a key: its PEM text, or else the path of a file, which is read again for each
// request.
struct Pem {
  std::string data{};
  std::string file{};

  bool empty() const { return data.empty() && file.empty(); }
};

// A program that hands out credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version{};
  std::string command{};
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment{};
  bool provide_cluster_info = false;
};

// The identity that requests are made with. Empty fields are not used; `token_file` wins over
// `token`.
struct UserAuth {
  Pem certificate{};
  Pem key{};
  std::string token{};
  std::string token_file{};
  std::string username{};
  std::string password{};
  std::optional<ExecPlugin> exec{};
};

// How to reach an API server. An immutable value; holds secrets, so nothing of `user` may be
// logged.
struct ClusterAccess {
  std::string server{};  // URL without a slash at its end
  Pem ca{};              // empty: the system's
  bool insecure = false;
  std::string tls_server_name{};  // empty: the host of `server`
  std::string proxy_url{};        // empty: the proxy that the environment names
  UserAuth user{};
};

// Parses a kubeconfig and takes its current context. `source` names it in messages; relative paths
// in it are below `directory`. Unknown keys are ignored, as kubectl does. kInvalidArgument with the
// place, and never with a value that could be secret; kUnimplemented for a key that would change
// the user's identity and is not supported (auth-provider, impersonation).
StatusOr<ClusterAccess> ParseKubeconfig(std::string_view text, std::string_view source,
                                        std::string_view directory);

StatusOr<ClusterAccess> LoadKubeconfig(const std::string& file);

// The service account of the pod that this process runs in. `host` and `port` name the API server
// (the variables KUBERNETES_SERVICE_HOST and _PORT); token and CA are files in `directory`.
inline constexpr std::string_view kServiceAccountDirectory =
    "/var/run/secrets/kubernetes.io/serviceaccount";
StatusOr<ClusterAccess> InClusterAccess(std::string_view host, std::string_view port,
                                        std::string_view directory);

// Decodes a base64 text (RFC 4648, section 4), the form of PEM texts in kubeconfig files. White
// space is skipped; nullopt for any other character outside the alphabet, and for missing
// padding.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace resmgr::agent
