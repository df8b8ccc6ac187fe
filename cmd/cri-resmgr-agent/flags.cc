// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-agent/flags.h"

#include <fmt/ranges.h>

#include "pkg/base/parse.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/kube/names.h"
#include "pkg/kube/quantity.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

constexpr std::string_view kSummary =
    "Delivers the configuration of its node from ConfigMaps to cri-resmgr, and reports in the\n"
    "node's annotations whether it was applied. NODE_NAME must be set in the environment.";

CommandLine::Setter TakeReports(agent::AgentOptions& options) {
  return [&options](std::string_view value) -> Status {
    options.show_cpus = false;
    options.pod_events = false;
    options.topology = false;
    options.claims = false;
    for (const std::string_view part : Split(value, ',')) {
      const std::string_view report = Trim(part);
      if (report.empty()) continue;
      bool* const chosen = report == "cpus"         ? &options.show_cpus
                           : report == "pod-events" ? &options.pod_events
                           : report == "topology"   ? &options.topology
                           : report == "claims"     ? &options.claims
                                                    : nullptr;
      if (chosen == nullptr) {
        return InvalidArgument(
            "\"{}\" is not a valid report: choose from cpus, pod-events, topology and claims",
            Printable(report, 64));
      }
      *chosen = true;
    }
    return OkStatus();
  };
}

void DeclareCluster(CommandLine& line, AgentFlags& flags) {
  line.Group("Cluster");
  line.Flag("kubeconfig", "FILE",
            "The kubeconfig file with address and credentials for the API server; empty: the pod's "
            "service account.",
            &flags.kubeconfig);
  line.Flag("config-ns", "NAMESPACE", "The namespace of the ConfigMaps.",
            &flags.agent.map_namespace);
  line.Flag("configmap-name", "NAME",
            "The first part of the ConfigMaps' names. Of NAME.node.$NODE_NAME, NAME.group.GROUP "
            "and NAME.default, the first one that exists applies.",
            &flags.agent.map_name);
  line.Flag("label-name", "LABEL", "The node's label that names its group.",
            &flags.agent.group_label);
  line.Flag("allow-domains", "LIST",
            "Domains of the labels, annotations, taints and extended resources that cri-resmgr may "
            "set on the node, separated by commas.",
            fmt::format("{}", fmt::join(flags.agent.allowed_domains, ",")),
            [&flags](std::string_view value) -> Status {
              flags.agent.allowed_domains.clear();
              for (const std::string_view domain : Split(value, ',')) {
                const std::string_view trimmed = Trim(domain);
                if (trimmed.empty()) continue;
                if (!IsSubdomain(trimmed)) {
                  return InvalidArgument("\"{}\" is not a domain", Printable(trimmed, 64));
                }
                flags.agent.allowed_domains.emplace_back(trimmed);
              }
              return OkStatus();
            });
  line.Flag(
      "node-reports", "LIST",
      "What cri-resmgr may report in addition to its policy: cpus (an annotation of the node with "
      "the allocated CPUs), pod-events (Events of pods that are refused or moved), topology (the "
      "node's NodeResourceTopology, for schedulers), claims (the node's ResourceSlice, and the "
      "ResourceClaims that it serves). Empty: nothing.",
      "cpus,pod-events,topology,claims", TakeReports(flags.agent));
}

CommandLine::Setter TakeDuration(std::chrono::milliseconds& target) {
  return [&target](std::string_view value) -> Status {
    constexpr std::chrono::hours kLongest{1};
    const auto duration = ParseDuration(value, kLongest);
    if (!duration) {
      return InvalidArgument("\"{}\" is not a time of up to an hour, such as 30s",
                             Printable(value, 32));
    }
    target = *duration;
    return OkStatus();
  };
}

void DeclareLoad(CommandLine& line, AgentFlags& flags) {
  line.Group("Load of the API server");
  line.Flag("start-spread", "TIME",
            "The first request is sent after a random delay of up to this time. Use 700s where "
            "10,000 agents start at the same time.",
            "1s", TakeDuration(flags.agent.retry.start_spread));
  line.Flag("report-spread", "TIME",
            "The result of a ConfigMap that several nodes share is reported after a random delay "
            "of up to this time, or of twice this time for a rejection; that of a node's own "
            "ConfigMap at once. The default suits 600 nodes; use 75s for 10,000.",
            "5s", TakeDuration(flags.agent.report.spread));
}

void DeclareSockets(CommandLine& line, AgentFlags& flags) {
  line.Group("Sockets");
  line.Flag("cri-resmgr-socket", "PATH",
            "The socket on which cri-resmgr accepts the configuration.", &flags.cri_resmgr_socket);
  line.Flag("agent-socket", "PATH", "The socket on which this agent serves cri-resmgr.",
            &flags.agent_socket);
}

void DeclareLog(CommandLine& line, AgentFlags& flags) {
  line.Group("Log");
  line.Flag("logger-level", "LEVEL",
            "The lowest severity that is logged: debug, info, warn or error.", "info",
            [&flags](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.log.level, ParseLogLevel(value));
              return OkStatus();
            });
  line.Flag("logger-debug", "LIST", "Sources whose debug messages are logged, separated by commas.",
            "", [&flags](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.log.debug, SourceFilter::Parse(value));
              return OkStatus();
            });
  line.Flag("logger-source", "LIST",
            "Sources whose messages are logged; the others log warnings and errors only.", "all",
            [&flags](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.log.enabled, SourceFilter::Parse(value));
              return OkStatus();
            });
  line.Flag("logger-format", "text|json", "The format of log lines.", "text",
            [&flags](std::string_view value) -> Status {
              RESMGR_ASSIGN_OR_RETURN(flags.log.format, ParseLogFormat(value));
              return OkStatus();
            });
}

void DeclareActions(CommandLine& line, AgentFlags& flags) {
  line.Group("Actions (do this and exit)");
  line.Choice("probe", {"alive", "config-status"},
              "Ask the agent at -agent-socket for its health; for liveness and readiness probes.",
              &flags.probe);
  line.Flag("version", "Print the version.", &flags.version);
}

Status CheckNames(const AgentFlags& flags) {
  const agent::AgentOptions& options = flags.agent;
  if (!IsSubdomain(options.map_namespace)) {
    return InvalidArgument("-config-ns: \"{}\" is not the name of a namespace",
                           Printable(options.map_namespace, 64));
  }
  if (!IsSubdomain(options.map_name)) {
    return InvalidArgument("-configmap-name: \"{}\" is not the name of a ConfigMap",
                           Printable(options.map_name, 64));
  }
  if (!IsLabelKey(options.group_label)) {
    return InvalidArgument("-label-name: \"{}\" is not the name of a label",
                           Printable(options.group_label, 64));
  }
  if (options.node.empty()) {
    return InvalidArgument("NODE_NAME is not set: the environment must name this node");
  }
  if (!IsSubdomain(options.node)) {
    return InvalidArgument("NODE_NAME: \"{}\" is not the name of a node",
                           Printable(options.node, 64));
  }
  return OkStatus();
}

Status Check(AgentFlags& flags, std::string_view node_name) {
  for (std::string* socket : {&flags.cri_resmgr_socket, &flags.agent_socket}) {
    *socket = std::string(StripUnixPrefix(*socket));
  }
  if (flags.agent_socket.empty()) return InvalidArgument("-agent-socket: needs a path");
  RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(flags.agent_socket), "-agent-socket"));
  if (!flags.probe.empty()) return OkStatus();
  if (flags.cri_resmgr_socket.empty()) return InvalidArgument("-cri-resmgr-socket: needs a path");
  if (flags.agent_socket == flags.cri_resmgr_socket) {
    return InvalidArgument("-agent-socket and -cri-resmgr-socket are both {}", flags.agent_socket);
  }
  RESMGR_RETURN_IF_ERROR(Annotate(CheckUnixPath(flags.cri_resmgr_socket), "-cri-resmgr-socket"));
  // Lower case, as the kubelet makes the node's name from the host's.
  flags.agent.node = ToLower(node_name);
  return CheckNames(flags);
}

}  // namespace

StatusOr<AgentFlags> ParseAgentFlags(int argc, const char* const* argv,
                                     std::string_view node_name) {
  AgentFlags flags;
  CommandLine line("cri-resmgr-agent", kSummary);
  DeclareCluster(line, flags);
  DeclareLoad(line, flags);
  DeclareSockets(line, flags);
  DeclareLog(line, flags);
  DeclareActions(line, flags);
  line.Section("Environment", "NODE_NAME: the name of this node's object at the API server.");
  line.Section("Exit status",
               "0 success; 1 wrong flags, or with -probe an agent that is not healthy; 2 wrong "
               "environment;\n"
               "3 a bug.");
  RESMGR_RETURN_IF_ERROR(line.Parse(argc, argv));
  if (line.help_requested()) {
    flags.help = line.Help();
    return flags;
  }
  if (flags.version) return flags;
  RESMGR_RETURN_IF_ERROR(Check(flags, node_name));
  return flags;
}

}  // namespace resmgr
