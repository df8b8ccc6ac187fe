// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/wiring.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pkg/admin/admin_service.h"
#include "pkg/admin/config_service.h"
#include "pkg/node/docker_door.h"
#include "pkg/node/nri_door.h"
#include "pkg/node/policy_setup.h"
#include "pkg/node/relay_door.h"
#include "pkg/nri/host/stage/host_config.h"
#include "pkg/page/page.h"
#include "pkg/sys/cgroups.h"

namespace resmgr {
namespace {

// nullopt: NRI plugins are not hosted.
std::optional<NriHostingOptions> HostingOf(const Flags& flags) {
  const NriHostConfig& config = flags.config.nri;
  if (config.socket.empty()) return std::nullopt;
  // Cannot fail, since the configuration was checked when it was read.
  NriHostingOptions options{.host = nri::HostOptionsOf(config),
                            .stage = nri::StageOptionsOf(config),
                            .cgroup_v2 = HasUnifiedCgroups()};
  options.stage.profile_directory = flags.relay_dir + "/nri-seccomp";
  return options;
}

HookHostingOptions HooksOf(const Flags& flags) {
  const HooksConfig& config = flags.config.hooks;
  HookHostingOptions options{
      .directory = config.directory,
      .timeout = config.timeout,
      .stage = {.skip_key = config.skip_key, .skip_value = config.skip_value}};
  for (const auto& [handler, handling] : flags.config.runtimes.classes)
    if (!handling.hooks) options.stage.skip_handlers.insert(handler);
  return options;
}

// The runtimes besides -runtime-socket's, with the handlers of the classes that name them.
std::vector<Backends::Backend> RuntimesOf(const RuntimesConfig& config) {
  std::vector<Backends::Backend> runtimes;
  for (const auto& [name, runtime] : config.runtimes) {
    Backends::Backend& backend =
        runtimes.emplace_back(Backends::Backend{.name = name, .socket = runtime.socket});
    for (const auto& [handler, handling] : config.classes) {
      if (handling.runtime == name) backend.handlers.push_back(handler);
    }
  }
  return runtimes;
}

HandlerAliases::Table AliasesOf(const RuntimesConfig& config) {
  HandlerAliases::Table aliases;
  for (const auto& [alias, handling] : config.classes) {
    if (handling.handler) aliases.emplace(alias, *handling.handler);
  }
  return aliases;
}

FrontDoorFactory DoorOf(const Flags& flags) {
  if (flags.mode == Mode::kNriPlugin) {
    return NriDoorFactory({.connection = {.socket = flags.nri_socket,
                                          .name = flags.nri_plugin_name,
                                          .index = flags.nri_plugin_index}},
                          flags.runtime_socket);
  }
  if (flags.mode == Mode::kDocker) {
    return DockerDoorFactory(
        {.socket = flags.relay_socket,
         .engine_socket = flags.docker_socket,
         .others = flags.docker_others_share ? docker::Others::kShare : docker::Others::kPass,
         .hooks = HooksOf(flags),
         .nri_host = HostingOf(flags)});
  }
  std::string images = flags.ImageSocket();
  return RelayDoorFactory(
      {.relay_socket = flags.relay_socket,
       .runtime_socket = flags.runtime_socket,
       .image_socket = images.empty() ? std::nullopt : std::optional(std::move(images)),
       .runtimes = RuntimesOf(flags.config.runtimes),
       .aliases = AliasesOf(flags.config.runtimes),
       .hooks = HooksOf(flags),
       .nri_host = HostingOf(flags)});
}

// The socket of the runtime behind the front door.
const std::string& BackOf(const Flags& flags) {
  switch (flags.mode) {
    case Mode::kRelay:
      return flags.runtime_socket;
    case Mode::kNriPlugin:
      return flags.nri_socket;
    case Mode::kDocker:
      return flags.docker_socket;
  }
  return flags.runtime_socket;
}

// nullptr: no page is served.
std::shared_ptr<NodePage> PageOf(const Flags& flags) {
  if (!flags.metrics_page) return nullptr;
  return std::make_shared<Page>(
      Page::Options{.methods = AdminMethods, .hosts = OwnHosts(flags.MetricsAddress())});
}

}  // namespace

NodeOptions OptionsOf(const Flags& flags, const PolicyRegistry& policies,
                      std::string_view version) {
  // A shared copy, since on a hanging disk the task may outlive the daemon.
  const auto copy = std::make_shared<const std::pair<Flags, PolicyRegistry>>(flags, policies);
  return {.version = std::string(version),
          .policies = policies,
          .topology = flags.topology,
          .cgroups = {.pods = flags.pods_cgroup},
          .door = DoorOf(flags),
          .services = {{flags.AdminSocket(), AdminMethods}, {flags.ConfigSocket(), ConfigMethods}},
          .relay_socket = flags.relay_socket,
          .runtime_socket = BackOf(flags),
          .directory = flags.relay_dir,
          .host_root = flags.host_root,
          .agent_socket = flags.AgentSocket(),
          .pod_resources_socket = flags.PodResourcesSocket(),
          .metrics_address = flags.MetricsAddress(),
          .page = PageOf(flags),
          .dump_directory = flags.DumpDirectory(),
          .dump_secrets = flags.dump_secrets,
          .cpu_file_directory = flags.CpuFileDirectory(),
          .take_over = flags.take_over,
          .config = flags.config,
          .overrides = flags.overrides,
          .forced = flags.forced,
          .config_file = flags.ConfigFile(),
          .read_again = [copy] { return ReadConfigAgain(copy->first, ChecksWith(copy->second)); }};
}

}  // namespace resmgr
