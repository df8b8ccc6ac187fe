// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "pkg/dump/dumper.h"
#include "pkg/node/policy_host.h"
#include "pkg/node/usage_metrics.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine.h"
#include "pkg/usage/usage_figures.h"
#include "pkg/usage/usage_sampler.h"

namespace resmgr {

// Options for sampling the containers of the host's active brain; the figures become metrics unless
// `metrics` is nullptr. All arguments must outlive the sampler.
UsageSampler::Options UsageSamplerOptions(EventLoop& loop, Clock& clock, PolicyHost& host,
                                          const Machine& machine, const std::string& host_root,
                                          UsageMetrics* metrics,
                                          std::function<bool()> per_container);

// Adds what containers use to the dump's recording, if there is one: at most a line each minute,
// with the containers whose use differs from the last recorded one. If a line is lost for want of
// room, the next one repeats all containers. Loop's thread only.
class UseRecorder {
 public:
  // Limit of containers in one line; further ones are left out.
  static constexpr size_t kMostContainers = 1000;
  static constexpr std::chrono::seconds kPause{60};

  // The dumper must outlive it.
  explicit UseRecorder(dump::Dumper& dumper) : dumper_(dumper) {}

  void Observe(const UsageFigures& figures);

 private:
  struct Recorded {
    double cpus = 0;
    std::optional<double> pressure{};
    uint64_t seen = 0;  // the last line at which the container was sampled
  };

  dump::Dumper& dumper_;
  uint64_t recording_ = 0;
  uint64_t line_ = 0;
  std::chrono::steady_clock::time_point last_{};
  std::unordered_map<std::string, Recorded> recorded_;  // by container id
};

}  // namespace resmgr
