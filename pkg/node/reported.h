// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "pkg/h2/flush_queue.h"
#include "pkg/node/agent_reports.h"
#include "pkg/node/configurator.h"
#include "pkg/node/counted.h"
#include "pkg/node/cpus_watch.h"
#include "pkg/node/node_options.h"
#include "pkg/node/node_publisher.h"
#include "pkg/node/pod_event_watch.h"
#include "pkg/node/scheduler_watch.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The reports to the agent: the policy, the numbers of allocated CPUs, what schedulers may count
// on, and Events of pods.
struct Reported {
  Reported(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket,
           const Machine& machine, AgentReports::Options options, NodeMetrics* metrics)
      : publisher(loop, flushes, socket),
        reports(loop, flushes, socket, std::move(options)),
        cpus(loop, machine, [this](std::string text) { reports.ShowCpus(std::move(text)); }),
        scheduler(
            {.loop = loop,
             .machine = machine,
             .tell =
                 [this](const SchedulerView* view) { reports.ShowTopology(TopologyReport(view)); },
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
