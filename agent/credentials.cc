// SPDX-License-Identifier: Apache-2.0
#include "agent/credentials.h"

#include <cstring>
#include <ctime>
#include <utility>

#include <absl/strings/escaping.h>

#include "agent/json_path.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr::agent {
namespace {

using SystemTime = std::chrono::system_clock::time_point;

constexpr size_t kMaxToken = 1 << 20;
// Tokens that expire within this time are not used: they could end while the request is under way.
constexpr std::chrono::seconds kSafety{10};

// Parses "Z", "+02:00" or "-07:30" into the distance from UTC.
std::optional<std::chrono::minutes> ParseOffset(std::string_view text) {
  if (text == "Z" || text == "z") return std::chrono::minutes(0);
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = ParseUint(text.substr(1, 2));
  const auto minutes = ParseUint(text.substr(4, 2));
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::chrono::minutes offset(static_cast<int>(*hours * 60 + *minutes));
  return text[0] == '-' ? -offset : offset;
}

// Parses RFC 3339 times like "2026-01-02T03:04:05Z" or "2026-01-02T05:04:05.678+02:00"; fractions
// of a second are ignored.
std::optional<SystemTime> ParseTime(const std::string& text) {
  std::tm time{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  if (*rest == '.') rest += 1 + std::strspn(rest + 1, "0123456789");
  const auto offset = ParseOffset(rest);
  if (!offset) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&time)) - *offset;
}

std::string ExecInfo(const ClusterAccess& access, const ExecPlugin& plugin) {
  Json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (plugin.provide_cluster_info) {
    Json cluster = {{"server", access.server}, {"insecure-skip-tls-verify", access.insecure}};
    std::string ca = access.ca.data;
    if (ca.empty() && !access.ca.file.empty())
      ca = ReadFile(access.ca.file, kMaxToken).value_or("");
    if (!ca.empty()) cluster["certificate-authority-data"] = absl::Base64Escape(ca);
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    info["spec"]["cluster"] = std::move(cluster);
  }
  return JsonText(info);
}

}  // namespace

StatusOr<PluginCredential> ParsePluginCredential(std::string_view text) {
  const std::optional<Json> json = ParseJson(text);
  if (!json || TextAt(*json, {"kind"}) != "ExecCredential") {
    return FailedPrecondition("the credential plugin did not print an ExecCredential");
  }
  PluginCredential result;
  result.credential.token = TextAt(*json, {"status", "token"});
  result.credential.certificate.data = TextAt(*json, {"status", "clientCertificateData"});
  result.credential.key.data = TextAt(*json, {"status", "clientKeyData"});
  if (result.credential.certificate.empty() != result.credential.key.empty()) {
    return FailedPrecondition("the credential plugin gave a certificate or a key alone");
  }
  if (result.credential.token.empty() && result.credential.certificate.empty()) {
    return FailedPrecondition("the credential plugin gave neither a token nor a certificate");
  }
  if (const std::string expires = TextAt(*json, {"status", "expirationTimestamp"});
      !expires.empty()) {
    result.expires = ParseTime(expires);
    if (!result.expires) {
      return FailedPrecondition(
          "the credential plugin gave an expirationTimestamp that is not RFC 3339");
    }
  }
  return result;
}

Credentials::Credentials(ClusterAccess access, CommandRunner& runner, WallClock now)
    : access_(std::move(access)), runner_(runner), now_(std::move(now)) {}

void Credentials::Get(Done done) {
  if (!access_.user.exec) return done(FromFiles());
  if (kept_ && (!kept_->expires || now_() + kSafety < *kept_->expires)) {
    return done(kept_->credential);
  }
  waiting_.push_back(std::move(done));
  if (running_ == nullptr) RunPlugin();
}

StatusOr<Credential> Credentials::FromFiles() const {
  Credential credential{.token = access_.user.token,
                        .certificate = access_.user.certificate,
                        .key = access_.user.key};
  if (!access_.user.token_file.empty()) {
    const StatusOr<std::string> text = ReadFile(access_.user.token_file, kMaxToken);
    if (!text.ok()) return FailedPrecondition("token file: {}", Message(text.status()));
    credential.token = Trim(*text);
    if (credential.token.empty()) {
      return FailedPrecondition("token file {} is empty", access_.user.token_file);
    }
  }
  return credential;
}

void Credentials::RunPlugin() {
  const ExecPlugin& plugin = *access_.user.exec;
  Command command;
  command.argv = {plugin.command};
  command.argv.insert(command.argv.end(), plugin.arguments.begin(), plugin.arguments.end());
  command.environment = plugin.environment;
  command.environment.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo(access_, plugin));
  running_ = runner_.Run(std::move(command),
                         [this](StatusOr<std::string> output) { PluginEnded(std::move(output)); });
}

void Credentials::PluginEnded(StatusOr<std::string> output) {
  running_.reset();
  StatusOr<PluginCredential> parsed =
      output.ok() ? ParsePluginCredential(*output) : StatusOr<PluginCredential>(output.status());
  kept_.reset();
  if (parsed.ok()) kept_ = *parsed;
  for (const Done& done : std::exchange(waiting_, {})) {
    if (parsed.ok()) {
      done(parsed->credential);
    } else {
      done(parsed.status());
    }
  }
}

}  // namespace resmgr::agent
