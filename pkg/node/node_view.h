// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pkg/audit/auditor.h"
#include "pkg/cri/runtimes_watch.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/node/configurator.h"
#include "pkg/node/front_door.h"
#include "pkg/node/plugin_view.h"
#include "pkg/node/policy_host.h"
#include "pkg/node/seen_container.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/policy/registry.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// What services see of the node that they serve; all outlives them. Loop's thread only.
struct NodeView {
  EventLoop& loop;
  std::string version{};
  const Machine& machine;
  const PolicyRegistry& policies;
  PolicyHost& host;
  Configurator& configurator;
  const Pipeline& pipeline;
  Auditor& auditor;
  std::string relay_socket{};  // "": the front door serves none
  std::string runtime_socket{};
  // "connected" or what is wrong.
  std::function<std::string()> runtime_state{};
  // Whether what is to be remembered over a restart is on the disk; true where nothing is.
  std::function<bool()> state_saved = [] { return true; };
  // Of the front door.
  std::function<std::vector<PluginView>()> plugins = [] { return std::vector<PluginView>(); };
  // Of the front door (FrontDoor::DescribeRuntimes).
  std::function<void(std::function<void(std::vector<RuntimeView>)> done)> describe_runtimes =
      [](const std::function<void(std::vector<RuntimeView>)>& done) { done({}); };
  // Of the front door.
  std::function<std::optional<FrontDoor::OtherSocket>()> other_socket = [] {
    return std::optional<FrontDoor::OtherSocket>();
  };
  // The containers that the front door knows without a brain; empty where it knows none.
  std::function<std::vector<SeenContainer>()> seen = [] { return std::vector<SeenContainer>(); };
  // Why this container has no file with its CPUs although it was to have one; empty: no reason.
  std::function<std::string(const ContainerId& id)> why_no_cpu_file = [](const ContainerId&) {
    return std::string();
  };
  // How many calls the dump lacks.
  std::function<uint64_t()> dump_lost = [] { return uint64_t{0}; };
  // Problems of the machine that an operator should look after; each is a sentence.
  std::function<std::vector<std::string>()> machine_problems = [] {
    return std::vector<std::string>();
  };
};

// Methods on a socket of the node's own, as cri-resmgr-ctl and the agent call them.
struct NodeService {
  std::string socket{};  // its path; "": it is not served
  // The methods own what they use beside the view.
  std::function<UnaryServer::Methods(const NodeView& view)> methods{};
};

}  // namespace resmgr
