// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/agent.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"

namespace resmgr {

// Everything that cri-resmgr-agent was told at its start. Paths of sockets are without "unix://".
struct AgentFlags {
  agent::AgentOptions agent;  // with the node's name
  std::string kubeconfig;     // empty: the service account of our pod
  std::string cri_resmgr_socket = "/var/run/cri-resmgr/cri-resmgr-config.sock";
  std::string agent_socket = "/var/run/cri-resmgr/cri-resmgr-agent.sock";
  LogSettings log;

  // Do one thing and exit.
  std::string probe;  // what to ask an agent that runs; empty: be one
  bool version = false;
  std::string help;  // the text to print, when it was asked for
};

// `node_name` is $NODE_NAME, "" where it is not set. InvalidArgument in one line, with the flag.
StatusOr<AgentFlags> ParseAgentFlags(int argc, const char* const* argv, std::string_view node_name);

}  // namespace resmgr
