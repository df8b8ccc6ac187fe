// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/node/agent_calls.h"
#include "pkg/node/pod_event.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Sends the agent the reports about the node and its pods (cri_resmgr.v1.NodeReports, ADR 9);
// nothing waits for it. An agent that refuses, or is too old to know the service, causes one
// warning. Loop's thread only.
class AgentReports {
 public:
  struct Options {
    AgentCalls::Times times{};
    size_t most_events = 256;  // that wait for an agent; then the oldest one is lost
    size_t most_at_once = 32;  // in one call
    // Older events are lost, too: as news they would mislead.
    std::chrono::milliseconds stale{std::chrono::minutes(10)};
    // Gets the numbers of events that the agent took, and that were lost.
    std::function<void(size_t taken, size_t lost)> on_events{};
  };

  AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket, Options options);
  AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket)
      : AgentReports(loop, flushes, std::move(socket), Options()) {}

  // Sets the text of the node's annotation (node_cpus.h), for every agent that comes; "": no
  // annotation.
  void ShowCpus(std::string cpus);
  // Sets the report for schedulers: a ShowTopologyRequest (scheduler_watch.h), for every agent that
  // comes.
  void ShowTopology(std::string report) { Show(values_[kTopology], std::move(report)); }
  // Sets what can be claimed: a ShowDevicesRequest (device_report.h), for every agent that comes.
  void ShowDevices(std::string report) { Show(values_[kDevices], std::move(report)); }
  // Calls `told` with the pool of the devices whenever an agent has taken them.
  void OnPool(std::function<void(const std::string& pool)> told) { on_pool_ = std::move(told); }
  // Requests an Event. It may become two if the agent's answer is lost. Returns before anything is
  // sent.
  void Add(PodEvent event);

 private:
  // Places in `values_`, in the order of sending.
  enum : size_t { kCpus, kTopology, kDevices, kValues };
  // A request of which only the last value counts.
  struct LastValue {
    std::string_view method{};             // as in UnaryClient::Call
    std::string_view unshown{};            // for the log, where the agent refuses it
    std::optional<std::string> wanted{};   // nullopt: not known yet
    std::optional<std::string> settled{};  // the request that this agent has taken or refused
    bool refusal_told = false;
  };

  void Show(LastValue& value, std::string request);
  void Send();
  void SendValue(LastValue& value);
  void OnShown(LastValue& value, std::string sent, const StatusOr<std::string>& reply);
  void SendEvents();
  void OnTaken(const StatusOr<std::string>& reply);
  void LoseStale();
  void LoseOldest();
  void Lost(size_t events);
  void TellRefusal(std::string_view what, const Status& why) const;
  void OnLost();

  std::function<void(const std::string& pool)> on_pool_ = [](const std::string&) {};
  EventLoop& loop_;
  Logger& log_;
  const std::string socket_;
  const Options options_;
  std::array<LastValue, kValues> values_;
  std::deque<PodEvent> events_;
  std::deque<PodEvent> sending_;
  bool takes_no_events_ = false;  // this agent refuses events
  bool events_refusal_told_ = false;
  RateLimit losses_;  // in the log
  AgentCalls calls_;
};

}  // namespace resmgr
