// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "agent/agent.h"
#include "agent/agent_service.h"
#include "agent/cluster_access.h"
#include "agent/curl_transport.h"
#include "agent/grpc_config_client.h"
#include "cmd/cri-resmgr-agent/flags.h"
#include "pkg/api/protobuf_log.h"
#include "pkg/cmdline/command_line.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/notify.h"
#include "pkg/sys/signal_wakeup.h"

namespace resmgr {
namespace {

// Exit codes of the process; -probe ends with kExitUnwell if the agent is not well.
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 1,
  kExitUnwell = 1,
  kExitEnvironment = 2,
  kExitInternal = 3,
};

constexpr std::chrono::seconds kProbeTimeout{5};

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int Fail(const Status& status) {
  fmt::print(stderr, "cri-resmgr-agent: {}\n", Message(status));
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnimplemented:
      return kExitUsage;
    case StatusCode::kInternal:
      return kExitInternal;
    default:
      return kExitEnvironment;
  }
}

int Print(std::string_view text) {
  const Status status = PrintOut(text);
  return status.ok() ? kExitOk : Fail(status);
}

StatusOr<agent::ClusterAccess> Access(const AgentFlags& flags) {
  if (!flags.kubeconfig.empty()) return agent::LoadKubeconfig(flags.kubeconfig);
  return agent::InClusterAccess(Variable("KUBERNETES_SERVICE_HOST"),
                                Variable("KUBERNETES_SERVICE_PORT"),
                                agent::kServiceAccountDirectory);
}

int Probe(const AgentFlags& flags) {
  const std::string_view query = flags.probe == "alive" ? agent::kAliveQuery : agent::kConfigQuery;
  const Status status = agent::ProbeAgent(flags.agent_socket, query, kProbeTimeout);
  if (status.ok()) return kExitOk;
  fmt::print(stderr, "{}\n", Message(status));
  return kExitUnwell;
}

Status Run(const AgentFlags& flags) {
  const LogThread log_thread;
  ConfigureLogging(flags.log);
  Logger& log = GetLogger("agent");
  RESMGR_ASSIGN_OR_RETURN(agent::ClusterAccess access, Access(flags));
  const std::string server = access.server;

  EventLoop loop;
  LoopClock timers(loop);
  RESMGR_ASSIGN_OR_RETURN(const auto transport,
                          agent::CurlTransport::Create(loop, std::move(access)));
  h2::FlushQueue flushes(loop);
  agent::GrpcConfigClient client(loop, flushes,
                                 {.socket = flags.cri_resmgr_socket, .node = flags.agent.node});
  agent::AgentOptions options = flags.agent;
  options.retry.seed = std::random_device()();
  agent::Agent node_agent(options, *transport, timers, client);
  RESMGR_ASSIGN_OR_RETURN(
      const auto server_for_daemon,
      UnaryServer::Create(loop, flushes, flags.agent_socket, agent::AgentService(node_agent)));

  const auto end = [&](pid_t sender) {
    log.Info("ending: a signal of process {}", sender);
    if (const Status status = NotifyStopping(); !status.ok()) log.Warn("{}", Message(status));
    loop.Stop();
  };
  const auto term = loop.OnSignal(SIGTERM, end);
  const auto interrupt = loop.OnSignal(SIGINT, end);
  node_agent.Start();
  log.Info("ready: node {}, API server {}, cri-resmgr at {}, serving {}", flags.agent.node, server,
           flags.cri_resmgr_socket, flags.agent_socket);
  if (const Status status = NotifyReady(); !status.ok()) log.Warn("{}", Message(status));
  loop.Run();
  log.Info("ended");
  return OkStatus();
}

int Main(int argc, const char* const* argv) {
  // `pkill -HUP cri-resmgr` and `pkill -USR1 cri-resmgr`, for the daemon, reach the agent, too.
  HoldSignal(SIGHUP);
  HoldSignal(SIGUSR1);
  // Without this, a write to a closed connection or pipe would end the process.
  std::signal(SIGPIPE, SIG_IGN);
  SendProtobufLogToOurs();
  const auto flags = ParseAgentFlags(argc, argv, Variable("NODE_NAME"));
  if (!flags.ok()) return Fail(flags.status());
  if (!flags->help.empty()) return Print(flags->help);
  if (flags->version) return Print(fmt::format("cri-resmgr-agent {}\n", RESMGR_VERSION));
  if (!flags->probe.empty()) return Probe(*flags);
  const Status status = Run(*flags);
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace
}  // namespace resmgr

int main(int argc, char** argv) {
  return resmgr::Main(argc, argv);
}
