// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "pkg/metrics/usage_metrics.h"
#include "pkg/node/policy_host.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine.h"
#include "pkg/usage/usage_sampler.h"

namespace resmgr {

// The figures as metrics. Series of single containers only if `per_container`.
UsageMetrics::Sample UsageMetricsOf(const UsageFigures& figures, const Machine& machine,
                                    bool per_container);

// Options for sampling the containers of the host's active brain; the figures become metrics unless
// `metrics` is nullptr. All arguments must outlive the sampler.
UsageSampler::Options UsageSamplerOptions(EventLoop& loop, Clock& clock, PolicyHost& host,
                                          const Machine& machine, const std::string& host_root,
                                          UsageMetrics* metrics,
                                          std::function<bool()> per_container);

}  // namespace resmgr
