// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/node/agent_reports.h"
#include "pkg/node/configurator.h"
#include "pkg/node/cpus_watch.h"
#include "pkg/node/metrics_watch.h"
#include "pkg/node/node_options.h"
#include "pkg/node/pod_event_watch.h"
#include "pkg/node/scheduler_watch.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The report about this node on its object in the API server.
struct NodeReport {
  std::string policy{};  // the active policy
  std::string source{};  // origin of the configuration: "agent", a file's path, ...

  // The containers that lost exclusive CPUs when the configuration came into force; usually empty.
  std::string losses{};

  friend bool operator==(const NodeReport&, const NodeReport&) = default;
};

// Shows a report on the node's object through the agent (v1.Agent), and again when the agent comes
// back. Nothing ever waits for it. If the agent refuses a report, it is sent again when it changes,
// and after a long pause: the agent may only pass on what an API server said that had just started.
// Loop's thread only.
class NodePublisher {
 public:
  // The timeout is longer than the agent waits for the API server.
  NodePublisher(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket,
                const AgentCalls::Times& times = {.timeout = std::chrono::seconds(30)},
                std::chrono::milliseconds refusal_pause = std::chrono::minutes(10));

  // Sets the report to show from now on.
  void Show(NodeReport report);

 private:
  enum class Way { kEachKey, kAllAtOnce };

  // Asks whether the agent is well, and patches.
  void Send();
  void OnHealth(const StatusOr<std::string>& reply);
  void Patch(Way way);
  void OnPatched(const NodeReport& report, Way way, const Status& status);

  EventLoop& loop_;
  Logger& log_;
  const std::chrono::milliseconds refusal_pause_;
  NodeReport wanted_;
  std::optional<NodeReport> settled_;  // the report that this agent has taken or refused
  EventLoop::HandlePtr again_;         // sends a refused report again
  Status refusal_;                     // the last one, which was logged; OK after a report
  AgentCalls calls_;
};

// All reports to the agent: the policy, the numbers of allocated CPUs, the topology for schedulers,
// and Events of pods.
struct Reported {
  Reported(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket,
           const Machine& machine, AgentReports::Options options, NodeMetrics* metrics)
      : publisher(loop, flushes, socket),
        reports(loop, flushes, socket, std::move(options)),
        cpus(loop, machine, [this](std::string text) { reports.ShowCpus(std::move(text)); }),
        scheduler(
            {.loop = loop,
             .machine = machine,
             .tell = [this](const auto& view) { reports.ShowTopology(view.SerializeAsString()); },
             .metrics = metrics}),
        events([this](PodEvent event) { reports.Add(std::move(event)); }) {}
  Reported(const Reported&) = delete;
  Reported& operator=(const Reported&) = delete;

  // Called when another configuration is in force.
  void NoteConfiguration(const Configurator& configurator);

  NodePublisher publisher;
  AgentReports reports;
  CpusWatch cpus;
  SchedulerWatch scheduler;
  PodEventWatch events;
};

// nullptr if no agent is to be called. `counted`, which may be nullptr, counts Events; all
// arguments must outlive the result.
std::unique_ptr<Reported> MakeReported(const NodeOptions& options, EventLoop& loop,
                                       h2::FlushQueue& flushes, const Machine& machine,
                                       Counted* counted);

}  // namespace resmgr
