// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "agent/delivery.h"
#include "agent/http.h"
#include "agent/timers.h"
#include "agent/verdict.h"

namespace resmgr::agent {

// The annotations of the node that tell what became of its configuration. Absent where there is
// nothing to say.
inline constexpr std::string_view kStatusAnnotation =
    "cri-resource-manager.intel.com/config-status";  // accepted, rejected, pending or none
inline constexpr std::string_view kMapAnnotation = "cri-resource-manager.intel.com/config-map";
inline constexpr std::string_view kVersionAnnotation =
    "cri-resource-manager.intel.com/config-version";  // resourceVersion of the map
inline constexpr std::string_view kErrorAnnotation = "cri-resource-manager.intel.com/config-error";
inline constexpr std::array kStatusAnnotations = {kStatusAnnotation, kMapAnnotation,
                                                  kVersionAnnotation, kErrorAnnotation};

// Shows each verdict on the node's object, until the API server has it, and as an Event of the node
// (reasons ConfigAccepted and ConfigRejected) in the namespace "default", where those of nodes are.
// Thread-compatible.
class StatusReporter {
 public:
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  StatusReporter(HttpTransport& transport, Timers& timers, std::string node,
                 Backoff::Options backoff, uint64_t seed,
                 WallClock now = std::chrono::system_clock::now);

  void Report(const Verdict& verdict);
  // Writes the annotations of the last verdict again: the node's object is a new one.
  void Repeat();

 private:
  HttpRequest Annotations(const Verdict& verdict) const;
  HttpRequest Event(const Verdict& verdict) const;

  const std::string node_;
  const WallClock now_;
  Verdict verdict_;        // the last one
  Verdict event_verdict_;  // of the last event, without the version
  Delivery annotations_;
  Delivery events_;
};

}  // namespace resmgr::agent
