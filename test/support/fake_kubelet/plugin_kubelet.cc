// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_kubelet/plugin_kubelet.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/stat.h>

#include "pkg/api/plugin_registration.pb.h"
#include "pkg/grpc/unary_client.h"

namespace resmgr::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr char kRegistration[] = "/pluginregistration.Registration/";
constexpr milliseconds kRegistrationTimeout{10'000};
constexpr milliseconds kBetweenTries{20};

template <typename Request>
std::string AskingFor(const PluginKubelet::Claims& claims) {
  Request request;
  for (const PluginKubelet::Claim& claim : claims) {
    dra_api::Claim& message = *request.add_claims();
    message.set_uid(claim.uid);
    message.set_namespace_(claim.namespace_name);
    message.set_name(claim.name);
  }
  return request.SerializeAsString();
}

// A kubelet asks again for claims without an entry, too.
template <typename Response>
Status ErrorOf(const StatusOr<Response>& response, const PluginKubelet::Claims& claims) {
  if (!response.ok()) return response.status();
  for (const PluginKubelet::Claim& claim : claims) {
    const auto entry = response->claims().find(claim.uid);
    if (entry == response->claims().end()) return Internal("no entry for {}", claim.uid);
    if (!entry->second.error().empty())
      return FailedPrecondition("{}: {}", claim.uid, entry->second.error());
  }
  return OkStatus();
}

template <typename Response>
StatusOr<Response> Parsed(const StatusOr<std::string>& reply) {
  if (!reply.ok()) return reply.status();
  Response response;
  if (!response.ParseFromString(*reply)) return Internal("the answer is malformed");
  return response;
}

// A socket that was made anew under the same name is another one. "" for what is none.
std::string IdentityOf(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return "";
  return fmt::format("{} {} {} {}", path, found.st_ino, found.st_ctim.tv_sec,
                     found.st_ctim.tv_nsec);
}

}  // namespace

PluginKubelet::PluginKubelet(std::string root, std::vector<std::string> services)
    : root_(std::move(root)), services_(std::move(services)) {}

void PluginKubelet::Look() {
  std::set<std::string> present;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(root_ + "/var/lib/kubelet/plugins_registry", error)) {
    if (entry.path().filename().string().starts_with(".")) continue;
    const std::string identity = IdentityOf(entry.path().string());
    if (identity.empty()) continue;
    present.insert(identity);
    if (!sockets_.contains(identity)) Register(entry.path().string());
  }
  for (auto at = sockets_.begin(); at != sockets_.end();) {
    if (present.contains(at->first)) {
      ++at;
      continue;
    }
    const std::string driver = at->second;
    at = sockets_.erase(at);
    const bool has_another = std::ranges::any_of(
        sockets_, [&driver](const auto& socket) { return socket.second == driver; });
    if (!has_another) drivers_.erase(driver);
  }
}

void PluginKubelet::Register(const std::string& socket) {
  const std::string identity = IdentityOf(socket);
  const UnaryAnswer answer =
      AskUnary(socket, std::string(kRegistration) + "GetInfo", "", kRegistrationTimeout);
  pluginregistration::PluginInfo info;
  if (!answer.connected.ok() || !answer.reply.ok() || !info.ParseFromString(*answer.reply)) return;
  pluginregistration::RegistrationStatus status;
  Driver driver{.endpoint = info.endpoint(), .service = ""};
  for (const std::string& service : info.supported_versions()) {
    if (driver.service.empty() && std::ranges::find(services_, service) != services_.end())
      driver.service = service;
  }
  status.set_plugin_registered(info.type() == "DRAPlugin" && !driver.service.empty() &&
                               driver.endpoint.starts_with("/"));
  if (!status.plugin_registered()) status.set_error("it is no driver that this kubelet knows");
  const UnaryAnswer told = AskUnary(socket, std::string(kRegistration) + "NotifyRegistrationStatus",
                                    status.SerializeAsString(), kRegistrationTimeout);
  if (!told.reply.ok() || !status.plugin_registered()) return;
  sockets_[identity] = info.name();
  drivers_[info.name()] = driver;
}

StatusOr<std::string> PluginKubelet::Call(const std::string& driver, const std::string& method,
                                          const std::string& message, milliseconds timeout) const {
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return Unavailable("the driver {} is not registered", driver);
  const std::string path =
      fmt::format("/k8s.io.kubelet.pkg.apis.dra.{}/{}", found->second.service, method);
  const UnaryAnswer answer = AskUnary(root_ + found->second.endpoint, path, message, timeout);
  return answer.connected.ok() ? answer.reply : answer.connected;
}

StatusOr<dra_api::NodePrepareResourcesResponse> PluginKubelet::Prepare(const std::string& driver,
                                                                       const Claims& claims,
                                                                       milliseconds timeout) const {
  return Parsed<dra_api::NodePrepareResourcesResponse>(
      Call(driver, "NodePrepareResources", AskingFor<dra_api::NodePrepareResourcesRequest>(claims),
           timeout));
}

StatusOr<dra_api::NodeUnprepareResourcesResponse> PluginKubelet::Unprepare(
    const std::string& driver, const Claims& claims, milliseconds timeout) const {
  return Parsed<dra_api::NodeUnprepareResourcesResponse>(
      Call(driver, "NodeUnprepareResources",
           AskingFor<dra_api::NodeUnprepareResourcesRequest>(claims), timeout));
}

StatusOr<dra_api::NodePrepareResourcesResponse> PluginKubelet::PrepareAll(const std::string& driver,
                                                                          const Claims& claims,
                                                                          milliseconds patience) {
  for (const auto end = SteadyClock::now() + patience;;) {
    Look();
    auto response = Prepare(driver, claims);
    const Status status = ErrorOf(response, claims);
    if (status.ok()) return response;
    if (SteadyClock::now() >= end) return status;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

Status PluginKubelet::UnprepareAll(const std::string& driver, const Claims& claims,
                                   milliseconds patience) {
  for (const auto end = SteadyClock::now() + patience;;) {
    Look();
    Status status = ErrorOf(Unprepare(driver, claims), claims);
    if (status.ok() || SteadyClock::now() >= end) return status;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace resmgr::test
