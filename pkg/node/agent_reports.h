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
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/node/pod_event_watch.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Calls to the agent, one at a time over a connection of their own. An agent that is not there,
// hangs or fails is tried again, with growing pauses and over a new connection each time, so that
// nothing piles up. Loop's thread only.
class AgentCalls {
 public:
  struct Times {
    std::chrono::milliseconds first_pause{250};
    std::chrono::milliseconds longest_pause{30'000};
    std::chrono::milliseconds timeout{10'000};  // of a call
  };
  struct Options {
    std::string socket{};
    Times times{};
    std::string complaint{};  // for the log, once, where the agent cannot be reached
    // Begins a series of calls that ends with Done or Failed, or does nothing if the agent needs no
    // report.
    std::function<void()> begin{};
    // The connection to the agent is lost, with the call under way; another agent may come.
    std::function<void()> lost{};
  };

  AgentCalls(EventLoop& loop, h2::FlushQueue& flushes, Options options);

  // Both begin a series unless one is under way: Begin at once, also within a pause; BeginSoon in
  // the next turn of the loop, except within a pause.
  void Begin();
  void BeginSoon();
  // The next failure is followed by the first pause.
  void ForgetFailures() { pauses_.Reset(); }

  // A call of a series. `done` is not run where the connection is lost before the reply.
  void Call(std::string_view method, std::string_view message, UnaryClient::Done done);
  // The series is over, and the next may begin. `well`: the agent did what it was asked for.
  void Done(bool well);
  // The agent cannot do it now.
  void Failed(const Status& why);

 private:
  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Logger& log_;
  const Options options_;
  std::unique_ptr<UnaryClient> client_;  // until the agent goes
  bool calling_ = false;
  bool complained_ = false;
  Backoff pauses_;
  EventLoop::HandlePtr timer_;
};

// Sends the agent the reports about the node and its pods (cri_resmgr.v1.NodeReports, ADR 9);
// nothing waits for it. An agent that refuses, or is too old to know the service, causes one
// warning. Loop's thread only.
class AgentReports {
 public:
  struct Options {
    AgentCalls::Times times{};
    size_t most_events = 256;  // that wait for an agent; then the oldest one is lost
    size_t most_at_once = 32;  // in one call
    // Older events are lost, too: a late Event would mislead.
    std::chrono::milliseconds stale{std::chrono::minutes(10)};
    // Gets the numbers of events that the agent took, and that were lost.
    std::function<void(size_t taken, size_t lost)> on_events{};
  };

  AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket, Options options);
  AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket)
      : AgentReports(loop, flushes, std::move(socket), Options()) {}

  // Sets the text of the node's annotation (cpus_watch.h), for every agent that comes; "": no
  // annotation.
  void ShowCpus(std::string cpus);
  // Sets the report for schedulers: a ShowTopologyRequest (scheduler_watch.h), for every agent that
  // comes.
  void ShowTopology(std::string report) { Show(values_[kTopology], std::move(report)); }
  // Sets what can be claimed: a ShowDevicesRequest (dra_reports.h), for every agent that comes.
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
