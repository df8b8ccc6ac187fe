// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/metrics/call_times.h"
#include "pkg/metrics/plugin_stats.h"
#include "pkg/sys/traffic.h"

namespace prometheus {
class Collectable;
}  // namespace prometheus

namespace resmgr {

// All the daemon's counters about itself, with the prefix cri_resmgr_. Counting changes one atomic
// number and never allocates. Exists whether it is scraped (metrics_server.h) or not. Thread-safe,
// except that one thread counts calls and bytes.
class Metrics {
 public:
  // `known_methods` are paths ("/runtime.v1.RuntimeService/Version"). All others count as one
  // method "other", so that a client that invents names cannot fill the memory.
  Metrics(std::string_view version, const std::vector<std::string>& known_methods);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  enum class CallKind { kPassthrough, kIntercepted };
  // calls_total{service,method,kind,code}. Returns the same object each time. It lives as long as
  // this object, so callers may keep it. Only the event loop's thread counts.
  CallCounter& Calls(std::string_view path, CallKind kind);
  // calls_in_flight: 1 for a call that begins, -1 for one that ended. On the same thread.
  void CountInFlight(int change);

  enum class Event {
    kDecisionOk,       // policy_decisions_total{result="ok"}
    kDecisionRefused,  // policy_decisions_total{result="refused"}
    kUpdatePushed,     // container_updates_total{result="pushed"}
    kUpdateFailed,     // container_updates_total{result="failed"}
    kUpdateMoot,    // container_updates_total{result="moot"}: the container had ended, or a refused
                    // update is followed by another one
    kStartWaited,   // held_starts_total{result="waited"}: others have left the CPUs
    kStartRefused,  // held_starts_total{result="refused"}
    kStartLetThrough,   // held_starts_total{result="let_through"}: others were still on the CPUs
    kCpusetOverridden,  // overridden_cpusets_total
    kDumpDropped,       // dump_dropped_total
  };
  void Count(Event event, uint64_t times = 1);

  // dropped_placements_total{stage}, dropped_keys_total{stage}, ignored_failures_total{stage},
  // stage_refusals_total{stage}. Stages' names are constants of the daemon.
  void CountDroppedPlacement(std::string_view stage);
  void CountDroppedKeys(std::string_view stage);
  void CountIgnoredFailure(std::string_view stage);
  void CountStageRefusal(std::string_view stage);
  // stage_wait_seconds{stage}: how long a call waited for a stage that did not answer at once.
  void WaitedForStage(std::string_view stage, std::chrono::nanoseconds time);

  // The counter of a plugin, by its kind ("nri") and name ("10-logger"). It lives as long as this
  // object. After some hundreds of names all others share one, "other".
  PluginCounter& Plugin(std::string_view kind, std::string_view name);
  // plugins_ready{kind}.
  void SetReadyPlugins(std::string_view kind, size_t count);

  // For one of several runtimes: runtime_connected{runtime}, and
  // runtime_calls_total{runtime,result} with the sums so far.
  struct RuntimeFigures {
    bool connected = false;
    uint64_t calls = 0;
    uint64_t errors = 0;  // failed calls
    uint64_t refused_claims = 0;
  };
  void ShowRuntime(std::string_view name, const RuntimeFigures& figures);

  enum class Peer { kClient, kRuntime, kImage };
  // connections{peer}: sets the present number.
  void SetConnections(Peer peer, size_t count);

  // connection_bytes_total{peer,direction}: the bytes of a peer's connections, which one thread
  // counts. The result lives as long as this object.
  Traffic& Bytes(Peer peer);

  // The collectable for a scrape.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<prometheus::Collectable> collected_;
};

}  // namespace resmgr
