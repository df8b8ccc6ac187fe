// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/agent.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"

namespace resmgr {

// The options of cri-resmgr-agent. Paths of sockets are without "unix://".
struct AgentFlags {
  agent::AgentOptions agent;  // with the node's name
  std::string kubeconfig;     // empty: the service account of the agent's pod
  std::string cri_resmgr_socket = "/var/run/cri-resmgr/cri-resmgr-config.sock";
  std::string agent_socket = "/var/run/cri-resmgr/cri-resmgr-agent.sock";
  LogSettings log;

  // Requests to do one thing and exit.
  std::string probe;  // the query for a running agent; empty: run as one
  bool version = false;
  std::string help;  // the text to print, if it was requested
};

// `node_name` is $NODE_NAME, "" if unset. kInvalidArgument: one line that names the flag.
StatusOr<AgentFlags> ParseAgentFlags(int argc, const char* const* argv, std::string_view node_name);

}  // namespace resmgr
