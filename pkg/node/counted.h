// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "pkg/audit/auditor.h"
#include "pkg/dra/call_counts.h"
#include "pkg/metrics/health.h"
#include "pkg/metrics/metrics.h"
#include "pkg/metrics/metrics_server.h"
#include "pkg/metrics/node_metrics.h"
#include "pkg/metrics/usage_metrics.h"
#include "pkg/node/brain_host.h"
#include "pkg/node/metrics_watch.h"
#include "pkg/node/node_options.h"
#include "pkg/pipeline/pipeline.h"

namespace resmgr {

// The metrics objects, if metrics are requested; they exist from before the loop until after its
// end.
struct Counted {
  explicit Counted(const NodeOptions& options)
      : metrics(options.version, options.door.counted_methods), page(options.page) {}

  ServedMetrics Served() const {
    return {{metrics.collectable(), node.collectable(), usage.collectable()}, health, page};
  }

  Metrics metrics;
  NodeMetrics node;
  UsageMetrics usage;
  const std::shared_ptr<Health> health = std::make_shared<Health>();
  const std::shared_ptr<NodePage> page;
  std::unique_ptr<MetricsWatch> watch;
};

// nullptr if no metrics are requested.
std::unique_ptr<Counted> MakeCounted(const NodeOptions& options);

// Counts calls of the kubelet about claims; empty for nullptr, which else must outlive it.
std::function<void(const dra::AnsweredCall&)> ClaimCounter(Counted* counted);

// The same options, with decisions and acts counted unless `counted` is nullptr. It must outlive
// the brain host.
BrainHost::Options WithCounts(BrainHost::Options options, Counted* counted);

// Options for comparing the containers of the host's active brain; results are counted unless
// `counted` is nullptr. All arguments must outlive the auditor.
Auditor::Options AuditorOptions(EventLoop& loop, BrainHost& host, const Pipeline& pipeline,
                                Counted* counted);

}  // namespace resmgr
