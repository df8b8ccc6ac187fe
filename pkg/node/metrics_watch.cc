// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/metrics_watch.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "pkg/node/node_problems.h"
#include "pkg/policy/conventions.h"

namespace resmgr {
namespace {

void Count(const StatusOr<AuditReport>& result, NodeMetrics& metrics) {
  // Under the null policy there was nothing to compare: nothing has failed.
  if (result.status().code() == StatusCode::kFailedPrecondition) return;
  NodeMetrics::Audit audit{.failed = !result.ok()};
  if (result.ok()) {
    audit.drifted = result->drifted;
    for (const AuditReport::Finding& finding : result->findings) {
      audit.drifts += finding.drifts.size();
      if (finding.sent_again) ++audit.repaired;
    }
  }
  metrics.Audited(audit);
}

size_t NotUpdated(const ResourceManager* manager) {
  size_t count = 0;
  if (manager == nullptr) return count;
  ForEachNotUpdated(*manager,
                    [&count](const Pod&, const Container&, const Status& /*error*/) { ++count; });
  return count;
}

}  // namespace

EventLoop::HandlePtr MetricsWatch::Follow(Sources sources, std::chrono::milliseconds period) {
  Show(sources);
  return loop_.Every(period, [this, sources = std::move(sources), period,
                              due = Health::Clock::now() + period]() mutable {
    const auto now = Health::Clock::now();
    metrics_.Lagged(std::max(now - due, Health::Clock::duration::zero()));
    due = now + period;
    Show(sources);
  });
}

void MetricsWatch::OnRefused(const Act& /*act*/, const Status& why) {
  metrics_.Refused(CodeName(why.code()));
}

void MetricsWatch::OnMoved(const Act& /*act*/, const Shift& shift) {
  changed_ = true;
  metrics_.Moved(shift.containers);
}

void MetricsWatch::OnReleased(const Act& act) {
  failed_.erase(act.container.id);
  NoteMoves(act);
}

void MetricsWatch::OnAdopted(std::span<const Act> acts) {
  for (const Act& act : acts)
    NoteMoves(act);
}

void MetricsWatch::OnFoundEnded(std::span<const Act> acts) {
  for (const Act& act : acts) {
    failed_.erase(act.container.id);
    NoteMoves(act);
  }
}

void MetricsWatch::OnPushed(const Act& act) {
  if (failed_.erase(act.container.id) > 0) metrics_.UpdateRetried();
}

void MetricsWatch::OnFailed(const Act& act, const Status& /*why*/) {
  if (!failed_.insert(act.container.id).second) metrics_.UpdateRetried();
}

void MetricsWatch::OnRemoved(const Act& act) {
  changed_ = true;  // an exited container was counted until now
  failed_.erase(act.container.id);
}

void MetricsWatch::NoteMoves(const Act& act) {
  changed_ = true;
  for (const Shift& shift : act.others)
    metrics_.Moved(shift.containers);
}

void MetricsWatch::Show(const Sources& sources) {
  const ResourceManager* const manager = sources.host.manager();
  CpuSet offline = sources.offline();
  changed_ |= offline != offline_;
  offline_ = std::move(offline);
  if (std::exchange(changed_, false) || manager != shown_) {
    node_ = {};
    if (manager != shown_) failed_.clear();
    if (manager == nullptr) {
      node_.unassigned = (machine_.online() - offline_).size();
      metrics_.ShowPools({});
      metrics_.NothingDrifted();
    } else {
      ShowHeld(*manager, node_);
    }
    shown_ = manager;
  }
  node_.offline = (offline_ | OfflineCpus(machine_)).size();
  node_.runtime_ready = manager != nullptr && manager->synchronizer().ready();
  node_.state_saved = sources.state_saved();
  const StateStore::Written written = sources.state_written();
  node_.state = {.writes = written.writes, .failures = written.failures, .bytes = written.bytes};
  node_.configuration = configurations_;
  node_.policy = sources.policy();
  node_.not_updated = NotUpdated(sources.host.updating_manager());
  if (sources.cpu_files) std::tie(node_.cpu_files, node_.cpu_files_behind) = sources.cpu_files();
  metrics_.Show(node_);
  health_.Beat();
  const bool ready = manager == nullptr || node_.runtime_ready;
  health_.SetNotReady(ready ? "" : "what the runtime holds is not known yet");
}

void MetricsWatch::ShowHeld(const ResourceManager& manager, NodeMetrics::Node& node) {
  const Snapshot& snapshot = manager.snapshot();
  std::set<PodSandboxId> pods;
  CpuSet exclusive = manager.held_claims().Cpus();
  ShowClaims(manager.held_claims().all().size(), exclusive);
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    ++node.containers;
    pods.insert(pod.id);
    if (container.state != ContainerState::kExited)
      exclusive = exclusive | container.placement.exclusive;
  });
  CpuSet reserved;
  CpuSet shared;
  std::vector<NodeMetrics::Pool> pools;
  for (const Zone& zone : manager.policy().Zones(snapshot)) {
    if (!IsIsolatedPool(zone.name)) {
      CpuSet& cpus = IsReservedPool(zone.name) ? reserved : shared;
      cpus = cpus | zone.shared;
    }
    pools.push_back({.name = zone.name,
                     .exclusive = zone.exclusive.size(),
                     .shared = zone.shared.size(),
                     .all = zone.cpus.size(),
                     .containers = zone.containers});
    if (zone.kind != "balloon") continue;
    pools.back().type = PoolTypeOf(zone.name);
    pools.back().request = static_cast<double>(zone.shared_request.value) / 1000;
  }
  metrics_.ShowPools(pools);
  reserved = reserved - exclusive;
  shared = shared - exclusive - reserved;
  node.pods = static_cast<int>(pods.size());
  node.exclusive = exclusive.size();
  node.reserved = reserved.size();
  node.shared = shared.size();
  node.unassigned = (machine_.online() - offline_ - exclusive - reserved - shared).size();
}

void MetricsWatch::ShowClaims(size_t claims, const CpuSet& held) {
  std::map<int, int> cpus;
  for (const NumaNode& node : machine_.nodes())
    if (!node.cpus.empty()) cpus[node.id] = node.cpus.CountCommon(held);
  metrics_.ShowClaims(claims, cpus);
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
    options.told = [counted](const auto& result) { Count(result, counted->node); };
  return options;
}

}  // namespace resmgr
