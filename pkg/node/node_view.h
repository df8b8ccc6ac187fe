// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/audit/auditor.h"
#include "pkg/dump/dumper.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/metrics/http_server.h"
#include "pkg/model/problem.h"
#include "pkg/node/configurator.h"
#include "pkg/node/front_door.h"
#include "pkg/node/policy_host.h"
#include "pkg/node/problems_watch.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/policy/registry.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"
#include "pkg/usage/usage_sampler.h"
#include "pkg/usage/use_rebalancer.h"

namespace resmgr {

class HostClasses;
class LostClaims;

// The part of the node that its services see; all members outlive them. Loop's thread only.
struct NodeView {
  EventLoop& loop;
  std::string version{};
  const Machine& machine;
  const PolicyRegistry& policies;
  PolicyHost& host;
  FrontDoor& door;
  Configurator& configurator;
  const Pipeline& pipeline;
  Auditor& auditor;
  std::string cgroup_mount = "/sys/fs/cgroup";  // of the host; for tests another directory
  std::string relay_socket{};                   // "": the front door has none
  std::string runtime_socket{};
  std::string cdi_directory{};  // where files of claims are; "": nowhere
  // The state of the runtime's connection: "connected", or the problem.
  std::function<std::string()> runtime_state{};
  // Whether all data for a restart is on the disk; true if there is none.
  std::function<bool()> state_saved = [] { return true; };
  // The reason why this container lacks the CPU file that it should have; empty: none.
  std::function<std::string(const ContainerId& id)> why_no_cpu_file = [](const ContainerId&) {
    return std::string();
  };
  // The number of calls that the dump lacks.
  std::function<uint64_t()> dump_lost = [] { return uint64_t{0}; };
  // True while the dump is losing calls; true while its files cannot be written.
  std::function<bool()> dump_losing = [] { return true; };
  std::function<bool()> dump_failing = [] { return false; };
  // CPUs of the machine that went offline since it was read.
  std::function<CpuSet()> offline = [] { return CpuSet(); };
  // Problems of the machine for an operator.
  std::function<std::vector<Problem>()> machine_problems = [] { return std::vector<Problem>(); };
  // Problems of the daemon itself: its sockets, and containers that it refused.
  std::function<std::vector<Problem>()> own_problems = [] { return std::vector<Problem>(); };
  // The times at which problems were first listed, shared by all that list them.
  std::shared_ptr<ProblemTimes> problem_times = std::make_shared<ProblemTimes>();
  // Figures of use; nullptr: they are not sampled.
  UsageSampler* usage = nullptr;
  // Traces the calls of a pod; nullptr: nothing does.
  dump::Dumper* dumper = nullptr;
  // Changes files of the host for classes; nullptr: nothing does.
  HostClasses* classes = nullptr;
  // Claims that hold CPUs without a pod; nullptr: they are not looked for.
  LostClaims* lost_claims = nullptr;
  // Moves containers by measured use; nullptr: use is not sampled.
  UseRebalancer* by_use = nullptr;
};

// Methods on a socket of the node, called by cri-resmgr-ctl and the agent.
struct NodeService {
  std::string socket{};  // its path; "": not served
  // Makes the methods, which own all that they use besides the view.
  std::function<UnaryServer::Methods(const NodeView& view)> methods{};
};

// The page about the node that the metrics' HTTP server shows to browsers.
class NodePage : public HttpHandler {
 public:
  // From now on there is data to show. Called on the loop's thread, like Close.
  virtual void Open(const NodeView& view) = 0;
  // After this returns, the page uses no objects of the view any more, not even on the loop.
  // Threads of the server may still call Answer.
  virtual void Close() = 0;
};

}  // namespace resmgr
