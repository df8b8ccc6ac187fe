// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/registration.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/api/plugin_registration.pb.h"
#include "pkg/base/parse.h"
#include "pkg/log/log.h"
#include "pkg/sys/files.h"

namespace resmgr::dra {
namespace {

constexpr std::string_view kPluginType = "DRAPlugin";
// The kubelet uses the first version that it knows of each service.
constexpr std::string_view kServices[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin",
                                          "v1.DRAResourceHealth", "v1beta1.DRAResourceHealth",
                                          "v1alpha1.DRAResourceHealth"};

std::string HiddenName(const std::string& path) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / fmt::format(".{}", whole.filename().string())).string();
}

}  // namespace

UnaryServer::Methods Registration::Methods() {
  return {{"/pluginregistration.Registration/GetInfo",
           [this](const std::string&, const UnaryServer::Reply& reply) { reply(Info()); }},
          {"/pluginregistration.Registration/NotifyRegistrationStatus",
           [this](const std::string& message, const UnaryServer::Reply& reply) {
             reply(Note(message));
           }}};
}

StatusOr<std::string> Registration::Info() const {
  if (!options_.served()) return Unavailable("{} is not served yet", options_.endpoint);
  pluginregistration::PluginInfo info;
  info.set_type(std::string(kPluginType));
  info.set_name(options_.driver);
  info.set_endpoint(options_.endpoint);
  for (const std::string_view service : kServices)
    info.add_supported_versions(std::string(service));
  return info.SerializeAsString();
}

StatusOr<std::string> Registration::Note(const std::string& message) {
  pluginregistration::RegistrationStatus status;
  if (!status.ParseFromString(message)) return InvalidArgument("not a RegistrationStatus");
  const std::string refusal =
      status.plugin_registered() ? "" : Printable("registration failed: " + status.error());
  if (!refusal.empty() && refusal_.empty()) refused_at_ = std::chrono::system_clock::now();
  if (!refusal.empty() && refusal != refusal_)
    GetLogger("dra").Warn("the kubelet does not take the driver {}: {}", options_.driver, refusal);
  if (refusal.empty() && (!std::exchange(registered_, true) || !refusal_.empty()))
    GetLogger("dra").Info("the kubelet has taken the driver {}", options_.driver);
  refusal_ = refusal;
  return pluginregistration::RegistrationStatusResponse().SerializeAsString();
}

std::optional<Problem> Registration::problem() const {
  if (refusal_.empty()) {
    // The wall clock may be set while the machine boots.
    const auto late = EventLoop::Clock::now() - begun_ - options_.patience;
    if (registered_ || late.count() < 0) return std::nullopt;
    return Problem{.kind = "plugin",
                   .since = std::chrono::system_clock::now() -
                            std::chrono::duration_cast<std::chrono::milliseconds>(late),
                   .message = fmt::format("no kubelet has asked for the driver {}: claims are not "
                                          "prepared. It looks in plugins_registry of its root "
                                          "directory, which has to be /var/lib/kubelet",
                                          options_.driver),
                   .objects = {options_.driver},
                   .next = "systemctl status kubelet"};
  }
  return Problem{.kind = "plugin",
                 .since = refused_at_,
                 .message = fmt::format("the kubelet does not take the driver {}: {}",
                                        options_.driver, refusal_),
                 .objects = {options_.driver},
                 .next = "journalctl -u kubelet"};
}

StatusOr<ListeningSocket> ListenForKubelet(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(ListeningSocket listener, ListeningSocket::Create(HiddenName(path)));
  RESMGR_RETURN_IF_ERROR(listener.Rename(path));
  return listener;
}

void WithdrawFromKubelet(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) ::unlink(path.c_str());
}

}  // namespace resmgr::dra
