// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/counted.h"

namespace resmgr {
namespace {

void Count(const AuditReport* report, NodeMetrics& metrics) {
  NodeMetrics::Audit audit{.failed = report == nullptr};
  if (report != nullptr) {
    audit.drifted = report->drifted;
    for (const AuditReport::Finding& finding : report->findings) {
      audit.drifts += finding.drifts.size();
      if (finding.sent_again) ++audit.repaired;
    }
  }
  metrics.Audited(audit);
}

}  // namespace

std::unique_ptr<Counted> MakeCounted(const NodeOptions& options) {
  if (options.metrics_address.empty()) return nullptr;
  return std::make_unique<Counted>(options);
}

std::function<void(const dra::AnsweredCall&)> ClaimCounter(Counted* counted) {
  if (counted == nullptr) return {};
  return [&metrics = counted->node](const dra::AnsweredCall& call) {
    metrics.ClaimsAnswered(
        {.prepare = call.prepare, .ok = call.ok, .failed = call.failed, .took = call.took});
  };
}

BrainHost::Options WithCounts(BrainHost::Options options, Counted* counted) {
  if (counted == nullptr) return options;
  counted->watch = std::make_unique<MetricsWatch>(options.loop, options.machine, counted->node,
                                                  *counted->health);
  options.manager.metrics = &counted->metrics;
  options.manager.decision_times = &counted->node;
  options.manager.observer = counted->watch.get();
  return options;
}

Auditor::Options AuditorOptions(EventLoop& loop, BrainHost& host, const Pipeline& pipeline,
                                Counted* counted) {
  Auditor::Options options{
      .loop = loop,
      .manager = [&host] { return host.manager(); },
      .numbers_are_ours = [&pipeline] { return !pipeline.OthersSetNumbers(); }};
  if (counted != nullptr)
    options.told = [counted](const AuditReport* report) { Count(report, counted->node); };
  return options;
}

}  // namespace resmgr
