// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr/flags.h"

#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/config/config_file.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/metrics/metrics_server.h"
#include "pkg/nri/host/stage/host_config.h"
#include "pkg/nri/plugin_connection.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

constexpr std::string_view kDefaultImageSocket = "default";
constexpr std::string_view kNoImageSocket = "-";
constexpr std::string_view kNoSocket = "disabled";
constexpr std::string_view kNoMetrics = "off";

constexpr std::string_view kSummary =
    "Runs between the kubelet and the container runtime, forwards every CRI call, and decides on\n"
    "which CPUs and memory nodes the containers run. Set the runtime endpoint of the kubelet (or\n"
    "of crictl) to the path of -relay-socket.";

// Declares the flags that name configuration files. An options file must not set them.
void DeclareConfigFiles(CommandLine& line, Flags& flags) {
  line.Group("Configuration");
  line.Flag(
      "config", "FILE",
      "Read the configuration from this file: YAML, or one flag per line without dashes. Flags on "
      "the command line override it, and so does the configuration that an agent sends.",
      &flags.config_file);
  line.Flag("force-config", "FILE",
            "As -config, but refuse the configuration that an agent sends. Without FILE: the file "
            "of -config.",
            "", [&flags](std::string_view file) -> Status {
              flags.forced = true;
              flags.force_config_file = file;
              return OkStatus();
            });
  line.Bare("force-config", "");
  line.Flag("fallback-config", "FILE",
            "As -config, but only until an agent has sent a configuration.",
            &flags.fallback_config_file);
}

StatusOr<Mode> ParseMode(std::string_view mode) {
  if (mode == "relay") return Mode::kRelay;
  if (mode == "nri-plugin") return Mode::kNriPlugin;
  if (mode == "docker") return Mode::kDocker;
  return InvalidArgument("\"{}\" is not one of relay, nri-plugin, docker", Printable(mode));
}

void DeclareMode(CommandLine& line, Flags& flags) {
  line.Group("Mode");
  line.Flag("mode", "MODE",
            "How the daemon learns of containers: \"relay\" serves the kubelet on -relay-socket; "
            "\"nri-plugin\" runs as a plugin of a runtime that has NRI (containerd 1.7, CRI-O "
            "1.26.2 and newer), without a change to the kubelet; \"docker\" serves clients of the "
            "Docker API on -relay-socket.",
            "relay", [&flags](std::string_view mode) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.mode, ParseMode(mode));
              return OkStatus();
            });
  line.Flag("docker-socket", "PATH", "Where dockerd listens, with -mode docker.",
            &flags.docker_socket);
  line.Flag("docker-others", "HOW",
            "What to do with Docker containers that belong to no pod: \"pass\" leaves them "
            "unchanged, \"share\" restricts them to the shared CPUs.",
            "pass", [&flags](std::string_view how) -> Status {
              if (how != "pass" && how != "share") {
                return InvalidArgument("\"{}\" is not one of pass, share", Printable(how));
              }
              flags.docker_others_share = how == "share";
              return OkStatus();
            });
  line.Flag("nri-socket", "PATH", "The socket on which the runtime accepts NRI plugins.",
            &flags.nri_socket);
  line.Flag("nri-plugin-name", "NAME",
            "The name under which this plugin registers with the runtime.", &flags.nri_plugin_name);
  line.Flag("nri-plugin-index", "NN",
            "Two digits: the runtime calls plugins in ascending order of their indexes.",
            &flags.nri_plugin_index);
}

void DeclareSockets(CommandLine& line, Flags& flags) {
  line.Group("Sockets");
  line.Flag("relay-socket", "PATH", "The socket to which the kubelet connects.",
            &flags.relay_socket);
  line.Flag("runtime-socket", "PATH", "The socket of the container runtime.",
            &flags.runtime_socket);
  line.Flag("image-socket", "PATH",
            "The socket of the image service; \"default\" is that of -runtime-socket, \"-\" serves "
            "no image calls.",
            &flags.image_socket);
  line.Flag("config-socket", "PATH",
            "The socket on which an agent delivers the configuration; \"disabled\": none.",
            &flags.config_socket);
  line.Flag("agent-socket", "PATH",
            "The socket of the agent; \"disabled\": there is no agent to report to.",
            &flags.agent_socket);
  line.Flag("admin-socket", "PATH",
            "The socket to which cri-resmgr-ctl connects; \"disabled\": none.",
            &flags.admin_socket);
  line.Flag("pod-resources-socket", "PATH",
            "The socket on which the kubelet tells where the devices of containers are, for "
            "policies that ask for it; \"disabled\": it is not asked.",
            &flags.pod_resources_socket);
  line.Flag("metrics-address", "HOST:PORT",
            "The address on which metrics are served to Prometheus; \"off\": none.",
            &flags.metrics_address);
  line.Flag("metrics-page",
            "Serve a page for browsers at /page/ of -metrics-address, too. It shows the node with "
            "the names of its pods, is read-only and asks for no password.",
            &flags.metrics_page);
}

void DeclareNode(CommandLine& line, Flags& flags) {
  line.Group("Node");
  line.Flag("relay-dir", "DIR", "The directory for the state that is kept over restarts.",
            &flags.relay_dir);
  line.Flag("dump-dir", "DIR",
            "The only directory in which a configuration from an agent or cri-resmgr-ctl may place "
            "dumps and recordings. \"\": the directory dump in -relay-dir.",
            &flags.dump_dir);
  line.Flag("cpu-file-dir", "DIR",
            "The directory on the node for the files that show containers their CPUs (cpuFiles). "
            "It must be in memory (tmpfs) and be used by this daemon only. \"\": the path of "
            "-relay-socket followed by .cpus.",
            &flags.cpu_file_dir);
  line.Flag("topology", "SPEC",
            "The machine on which containers are placed: \"live\" (this one), an hwloc XML file, "
            "synthetic:DESCRIPTION, or a server type that cri-resmgr-ctl topology -types lists.",
            &flags.topology);
  line.Flag("pods-cgroup", "CGROUP",
            "The cgroup of all pods, which decides on what CPUs and memory nodes of this machine "
            "containers may be placed: a path or the name of a slice, for kubelets with "
            "--cgroup-root. \"\": kubepods.slice or kubepods, below the root or where it is found.",
            "", [&flags](std::string_view cgroup) -> Status {
              if (fmt::format("/{}/", cgroup).find("/../") != std::string::npos) {
                return InvalidArgument("\"{}\" is not a valid cgroup", Printable(cgroup));
              }
              flags.pods_cgroup = cgroup;
              return OkStatus();
            });
  line.Flag("host-root", "DIR",
            "The directory in which sys and proc of the host are, from which is read what "
            "containers use, and where classes are written.",
            &flags.host_root);
  line.Flag("dump-secrets",
            "Show environment values and registry credentials in dumps instead of hiding them.",
            &flags.dump_secrets);
  line.Flag("take-over",
            "If another daemon serves -relay-socket, replace it: it hands over its sockets, "
            "finishes its calls in flight and exits, and no connection is refused. If that fails, "
            "the other daemon continues and this one exits.",
            &flags.take_over);
}

void DeclareSettings(CommandLine& line, Flags& flags) {
  DeclareMode(line, flags);
  DeclareSockets(line, flags);
  DeclareNode(line, flags);
}

void DeclareActions(CommandLine& line, Flags& flags) {
  line.Group("Actions (do this and exit)");
  line.Flag("check-config", "Check the configuration against this machine.", &flags.check_config);
  line.Flag("print-config", "Print the configuration in force as YAML.", &flags.print_config);
  line.Flag("print-schema", "Print the JSON schema of the configuration, for editors.",
            &flags.print_schema);
  line.Flag("print-config-page", "Print the manual page cri-resmgr.yaml(5) of the configuration.",
            &flags.print_config_page);
  line.Flag("list-policies", "List the policies.", &flags.list_policies);
  line.Flag("reset-policy", "Forget all placements in the stored state.", &flags.reset_policy);
  line.Flag("reset-config", "Forget the configuration that an agent has sent.",
            &flags.reset_config);
  line.Flag("version", "Print the version.", &flags.version);
}

CommandLine MakeCommandLine() {
  CommandLine line("cri-resmgr", kSummary);
  line.Section(
      "Signals",
      "SIGTERM and SIGINT: finish the calls in flight, then exit. SIGHUP: read the configuration\n"
      "file again. SIGUSR1: turn all debug messages on, or off again.");
  line.Section(
      "Exit status",
      "0 success; 1 wrong flags or configuration; 2 wrong environment, such as a socket that is\n"
      "in use or no topology; 3 a bug.");
  line.Section(
      "Files",
      "/etc/cri-resmgr/cri-resmgr.yaml: the configuration that the packaged units read.\n"
      "/etc/default/cri-resmgr: further flags for these units. /var/lib/cri-resmgr: the state.");
  return line;
}

// Declares all flags. They keep pointers into `flags`, which must not move.
void DeclareAll(CommandLine& line, Flags& flags, const ConfigChecks& checks) {
  DeclareConfigFiles(line, flags);
  flags.overrides.DeclareFlags(line, checks);
  DeclareSettings(line, flags);
  DeclareActions(line, flags);
}

// The configuration file to read, or "".
StatusOr<std::string> ChooseConfigFile(const Flags& flags) {
  std::string file;
  std::string_view chosen;
  const std::array<std::pair<std::string_view, const std::string*>, 3> candidates = {
      {{"-config", &flags.config_file},
       {"-force-config", &flags.force_config_file},
       {"-fallback-config", &flags.fallback_config_file}}};
  for (const auto& [name, value] : candidates) {
    if (value->empty()) continue;
    if (!file.empty()) {
      return InvalidArgument("{} and {} exclude each other: give one file", chosen, name);
    }
    file = *value;
    chosen = name;
  }
  if (flags.forced && flags.ConfigFile() == flags.fallback_config_file) {
    return InvalidArgument("-force-config: needs a file, here or as -config FILE");
  }
  return file;
}

// Reads the file into the configuration. Options of an options file that are not part of the
// configuration set `flags`.
Status ReadConfigFile(const std::string& file, const ConfigChecks& checks, Flags& flags) {
  const StatusOr<std::string> content = ReadFile(file, kMaxConfigSize);
  if (!content.ok()) return InvalidArgument("{}", Message(content.status()));
  RESMGR_ASSIGN_OR_RETURN(const std::string_view text, CheckConfigText(*content, file));
  if (DetectConfigFormat(text) == ConfigFormat::kYaml) {
    RESMGR_ASSIGN_OR_RETURN(flags.config, ParseYamlFile(text, file, checks));
    return OkStatus();
  }
  Problems problems;
  const std::vector<OptionLine> lines = ParseOptionLines(text, file, problems);
  for (const OptionLine& line : lines) {
    if (line.name == "config" || line.name == "force-config" || line.name == "fallback-config") {
      return InvalidArgument("{}: {}: a configuration file cannot name another", line.where,
                             line.name);
    }
  }
  CommandLine line = MakeCommandLine();
  ConfigOptions options;
  options.DeclareFlags(line, checks);
  DeclareSettings(line, flags);
  DeclareActions(line, flags);
  problems.Add(ApplyOptionLines(lines, line, options));
  RESMGR_RETURN_IF_ERROR(problems.ToStatus());
  options.ApplyTo(flags.config);
  return OkStatus();
}

Status CheckSockets(Flags& flags) {
  for (std::string* socket : {&flags.relay_socket, &flags.runtime_socket, &flags.image_socket,
                              &flags.config_socket, &flags.agent_socket, &flags.admin_socket,
                              &flags.docker_socket, &flags.pod_resources_socket}) {
    *socket = std::string(StripUnixPrefix(*socket));
  }
  if (flags.relay_socket.empty()) return InvalidArgument("-relay-socket: needs a path");
  if (flags.runtime_socket.empty()) return InvalidArgument("-runtime-socket: needs a path");
  if (flags.mode == Mode::kDocker && flags.docker_socket.empty()) {
    return InvalidArgument("-docker-socket: needs a path");
  }
  struct Socket {
    std::string_view flag;
    std::string path;
    bool ours;
  };
  const std::string docker = flags.mode == Mode::kDocker ? flags.docker_socket : "";
  const std::array<Socket, 8> sockets = {
      {{"-relay-socket", flags.relay_socket, true},
       {"-config-socket", flags.ConfigSocket(), true},
       {"-admin-socket", flags.AdminSocket(), true},
       {"-runtime-socket", flags.runtime_socket, false},
       {"-image-socket", flags.ImageSocket(), false},
       {"-agent-socket", flags.AgentSocket(), false},
       {"-docker-socket", docker, false},
       {"-pod-resources-socket", flags.PodResourcesSocket(), false}}};
  for (size_t i = 0; i < sockets.size(); ++i) {
    if (sockets[i].path.empty()) continue;
    RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(sockets[i].path), sockets[i].flag));
    for (size_t j = 0; j < i; ++j) {
      // Sockets of others may be the same, as the runtime's and the images'. Ours come first here.
      if (!sockets[j].ours || sockets[j].path != sockets[i].path) continue;
      return InvalidArgument("{} and {} are both {}", sockets[j].flag, sockets[i].flag,
                             sockets[i].path);
    }
  }
  return OkStatus();
}

// Checks the further runtimes behind the relay.
Status CheckRuntimes(const Flags& flags) {
  const RuntimesConfig& config = flags.config.runtimes;
  if (flags.mode != Mode::kRelay && !config.runtimes.empty()) {
    return InvalidArgument("runtimes: several runtimes are served with -mode relay alone");
  }
  std::map<std::string, std::string> taken = {
      {flags.relay_socket, "-relay-socket"},    {flags.runtime_socket, "-runtime-socket"},
      {flags.ConfigSocket(), "-config-socket"}, {flags.AdminSocket(), "-admin-socket"},
      {flags.AgentSocket(), "-agent-socket"},   {flags.config.nri.socket, "nri.Host.Socket"}};
  for (const auto& [name, runtime] : config.runtimes) {
    const std::string key = fmt::format("runtimes.{}.Socket", name);
    const auto [other, is_new] = taken.emplace(runtime.socket, key);
    if (!is_new) {
      return InvalidArgument("{}: {} is the path of {}, too: each runtime needs its own", key,
                             runtime.socket, other->second);
    }
  }
  for (const auto& [handler, settings] : config.classes) {
    if (!settings.handler || flags.mode == Mode::kRelay) continue;
    return InvalidArgument(
        "runtimeClasses.{}.Handler: handlers have aliases with -mode relay alone", handler);
  }
  return OkStatus();
}

// Refuses hook servers in a mode that never asks them: the node would seem protected by them.
Status CheckHooks(const Flags& flags) {
  if (flags.config.hooks.directory.empty() || flags.mode != Mode::kNriPlugin) return OkStatus();
  return InvalidArgument("{}: hook servers are asked with -mode relay or docker",
                         flags.overrides.Has("hook-dir") ? "-hook-dir" : "hooks.Directory");
}

// Checks the options of NRI plugins that connect to the daemon.
Status CheckNriHost(const Flags& flags) {
  RESMGR_RETURN_IF_ERROR(nri::UnsupportedPolicyOf(flags.config.nri).status());
  const std::string& socket = flags.config.nri.socket;
  if (socket.empty()) return OkStatus();
  const std::string_view name = flags.overrides.Has("nri-host") ? "-nri-host" : "nri.Host.Socket";
  if (flags.mode == Mode::kNriPlugin) {
    return InvalidArgument("{}: NRI plugins are served with -mode relay or docker", name);
  }
  const bool docker = flags.mode == Mode::kDocker;
  for (const std::string& other :
       {flags.relay_socket, flags.ConfigSocket(), flags.AdminSocket(),
        docker ? flags.docker_socket : flags.runtime_socket, docker ? "" : flags.ImageSocket()}) {
    if (socket == other) return InvalidArgument("{}: {} is another socket's path", name, socket);
  }
  return Annotate(CheckUnixPath(socket), name);
}

Status CheckNri(Flags& flags) {
  flags.nri_socket = std::string(StripUnixPrefix(flags.nri_socket));
  if (flags.mode != Mode::kNriPlugin) return OkStatus();
  if (flags.nri_socket.empty()) return InvalidArgument("-nri-socket: needs a path");
  RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(flags.nri_socket), "-nri-socket"));
  return nri::PluginConnection::Check(
      {.socket = flags.nri_socket, .name = flags.nri_plugin_name, .index = flags.nri_plugin_index});
}

Status CheckNode(const Flags& flags) {
  if (flags.take_over && flags.mode == Mode::kNriPlugin) {
    return InvalidArgument("-take-over: with -mode nri-plugin there is no socket to take over");
  }
  if (!flags.host_root.starts_with('/'))
    return InvalidArgument("-host-root: \"{}\" is not absolute", Printable(flags.host_root));
  if (flags.relay_dir.empty()) return InvalidArgument("-relay-dir: needs a path");
  if (!flags.cpu_file_dir.empty() && !flags.cpu_file_dir.starts_with('/'))
    return InvalidArgument("-cpu-file-dir: \"{}\" is not absolute, as the runtime needs it",
                           Printable(flags.cpu_file_dir));
  if (flags.MetricsAddress().empty()) {
    if (!flags.metrics_page) return OkStatus();
    return InvalidArgument("-metrics-page: needs -metrics-address, where it is served");
  }
  return Annotate(CheckMetricsAddress(flags.MetricsAddress()), "-metrics-address");
}

}  // namespace

std::string Flags::ImageSocket() const {
  if (image_socket == kNoImageSocket) return "";
  return image_socket == kDefaultImageSocket ? runtime_socket : image_socket;
}

std::string Flags::AgentSocket() const {
  return agent_socket == kNoSocket ? "" : agent_socket;
}

std::string Flags::ConfigSocket() const {
  return config_socket == kNoSocket ? "" : config_socket;
}

std::string Flags::AdminSocket() const {
  return admin_socket == kNoSocket ? "" : admin_socket;
}

std::string Flags::PodResourcesSocket() const {
  return pod_resources_socket == kNoSocket ? "" : pod_resources_socket;
}

std::string Flags::MetricsAddress() const {
  return metrics_address == kNoMetrics ? "" : metrics_address;
}

std::string Flags::DumpDirectory() const {
  return dump_dir.empty() ? relay_dir + "/dump" : dump_dir;
}

std::string Flags::CpuFileDirectory() const {
  if (!cpu_file_dir.empty()) return cpu_file_dir;
  return std::filesystem::absolute(relay_socket).string() + ".cpus";
}

std::string Flags::ConfigFile() const {
  if (!force_config_file.empty()) return force_config_file;
  return config_file.empty() ? fallback_config_file : config_file;
}

StatusOr<Config> ReadConfigAgain(const Flags& flags, const ConfigChecks& checks) {
  Flags read;
  RESMGR_RETURN_IF_ERROR(ReadConfigFile(flags.ConfigFile(), checks, read));
  flags.overrides.ApplyTo(read.config);
  return read.config;
}

StatusOr<Flags> ParseFlags(int argc, const char* const* argv, const ConfigChecks& checks) {
  // The arguments are parsed twice: first to find the file, then again so that flags win over the
  // file's values.
  Flags first;
  CommandLine first_line = MakeCommandLine();
  DeclareAll(first_line, first, checks);
  RESMGR_RETURN_IF_ERROR(first_line.Parse(argc, argv));
  if (first_line.help_requested()) {
    first.help = first_line.Help();
    return first;
  }
  if (first.version || first.list_policies || first.print_schema || first.print_config_page) {
    return first;
  }
  RESMGR_ASSIGN_OR_RETURN(const std::string file, ChooseConfigFile(first));

  Flags flags;
  if (!file.empty()) RESMGR_RETURN_IF_ERROR(ReadConfigFile(file, checks, flags));
  CommandLine line = MakeCommandLine();
  DeclareAll(line, flags, checks);
  RESMGR_RETURN_IF_ERROR(line.Parse(argc, argv));
  flags.overrides.ApplyTo(flags.config);
  RESMGR_RETURN_IF_ERROR(CheckSockets(flags));
  RESMGR_RETURN_IF_ERROR(CheckNri(flags));
  RESMGR_RETURN_IF_ERROR(CheckRuntimes(flags));
  RESMGR_RETURN_IF_ERROR(CheckHooks(flags));
  RESMGR_RETURN_IF_ERROR(CheckNriHost(flags));
  RESMGR_RETURN_IF_ERROR(CheckNode(flags));
  return flags;
}

}  // namespace resmgr
