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

#include "pkg/api/node_reports.pb.h"
#include "pkg/base/status.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/node/pod_event_watch.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Calls to the agent, one at a time over a connection of their own. If the agent is away, hangs or
// fails, the calls are tried again, with growing pauses and each time over a new connection, so
// that nothing piles up. Loop's thread only.
class AgentCalls {
 public:
  struct Times {
    std::chrono::milliseconds first_pause{250};
    std::chrono::milliseconds longest_pause{30'000};
    std::chrono::milliseconds timeout{10'000};  // of each call
  };
  struct Options {
    std::string socket{};
    Times times{};
    std::string complaint{};  // logged once if the agent cannot be reached
    // Begins a series of calls, which ends with Done or Failed; does nothing if the agent needs no
    // report.
    std::function<void()> begin{};
    // The connection is lost, and the call under way with it. The next connection may be to another
    // agent.
    std::function<void(const Status& why)> lost{};
  };

  AgentCalls(EventLoop& loop, h2::FlushQueue& flushes, Options options);

  // Both begin a series unless one is under way: Begin at once, even during a pause after a
  // failure; BeginSoon in the next turn of the loop, but not during such a pause.
  void Begin();
  void BeginSoon();
  // Makes the pause after the next failure as short as the first one.
  void ForgetFailures() { pauses_.Reset(); }

  // Makes a call of a series. If the connection is lost before the reply, `done` is not run.
  void Call(std::string_view method, std::string_view message, UnaryClient::Done done);
  // Ends the series, so that the next may begin. `well`: the agent did what was asked.
  void Done(bool well);
  // Ends the series because the agent cannot serve it now.
  void Failed(const Status& why);

 private:
  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  Logger& log_;
  const Options options_;
  std::unique_ptr<UnaryClient> client_;  // as long as the connection lasts
  bool calling_ = false;
  bool complained_ = false;
  Backoff pauses_;
  EventLoop::HandlePtr timer_;
};

// Sends the agent the reports about the node and its pods (cri_resmgr.v1.NodeReports, ADR 9).
// Nothing waits for them. If the agent refuses, or is too old to have the service, one warning is
// logged. Loop's thread only.
class AgentReports {
 public:
  struct Options {
    AgentCalls::Times times{};
    size_t most_events = 256;  // waiting events; beyond these, the oldest one is lost
    int most_at_once = 32;     // events in one call
    // Older events are dropped, too: a late Event would mislead.
    std::chrono::milliseconds stale{std::chrono::minutes(10)};
    // Receives the numbers of events that the agent took and that were lost.
    std::function<void(size_t taken, size_t lost)> on_events{};
  };

  AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket, Options options);
  AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket)
      : AgentReports(loop, flushes, std::move(socket), Options()) {}

  // Sets the text of the node's annotation (cpus_watch.h), which each agent that connects gets; "":
  // no annotation.
  void ShowCpus(std::string cpus);
  // Sets the report for schedulers, a ShowTopologyRequest (scheduler_watch.h), which each agent
  // that connects gets.
  void ShowTopology(std::string report) { Show(values_[kTopology], std::move(report)); }
  // Sets the devices for claims, a ShowDevicesRequest (dra_reports.h), which each agent that
  // connects gets.
  void ShowDevices(std::string report) { Show(values_[kDevices], std::move(report)); }
  // Calls `told` with the pool of the devices whenever an agent has taken them, and with the reason
  // whenever none has.
  void OnPool(std::function<void(const StatusOr<std::string>& pool)> told) {
    on_pool_ = std::move(told);
  }
  // Requests an Event. If the agent's answer is lost, there may be two. Returns before anything is
  // sent.
  void Add(PodEvent event);

 private:
  // Indexes of `values_`, in the order of sending.
  enum : size_t { kCpus, kTopology, kDevices, kValues };
  // A kind of request of which only the last value is sent.
  struct LastValue {
    std::string_view method{};             // as in UnaryClient::Call
    std::string_view unshown{};            // logged if the agent refuses it
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
  void OnLost(const Status& why);

  std::function<void(const StatusOr<std::string>& pool)> on_pool_ =
      [](const StatusOr<std::string>&) {};
  EventLoop& loop_;
  Logger& log_;
  const std::string socket_;
  const Options options_;
  std::array<LastValue, kValues> values_;
  std::deque<PodEvent> events_;
  cri_resmgr::v1::AddPodEventsRequest sending_;
  bool takes_no_events_ = false;  // this agent does not accept events
  bool events_refusal_told_ = false;
  RateLimit losses_;  // limits log lines about lost events
  AgentCalls calls_;
};

}  // namespace resmgr
