// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/usage_watch.h"

#include <chrono>
#include <memory>
#include <utility>

namespace resmgr {
namespace {

std::optional<double> RatioOf(const std::optional<double>& percent) {
  if (!percent) return std::nullopt;
  return *percent / 100;
}

std::optional<double> RatioOf(const std::optional<Pressure>& pressure) {
  if (!pressure) return std::nullopt;
  return pressure->some60 / 100;
}

UsageMetrics::Container ContainerOf(const ContainerFigures& figures) {
  const UsageSubject& subject = figures.subject;
  UsageMetrics::Container container{.namespace_name = subject.namespace_name,
                                    .pod = subject.pod,
                                    .name = subject.container,
                                    .cpu_used = figures.cpu_used,
                                    .throttled = RatioOf(figures.AnyThrottledPercent()),
                                    .cpu_pressure = RatioOf(figures.cpu_pressure),
                                    .memory_bytes = figures.memory_bytes};
  if (figures.remote_percent) container.remote_bytes = figures.remote_bytes;
  return container;
}

}  // namespace

UsageMetrics::Sample UsageMetricsOf(const UsageFigures& figures, const Machine& machine,
                                    bool per_container) {
  UsageMetrics::Sample sample{.cost_seconds = std::chrono::duration<double>(figures.cost).count(),
                              .files = figures.files};
  for (const auto& [name, pool] : figures.pools) {
    sample.pools.push_back({.name = name,
                            .cpu_used = pool.cpu_used,
                            .cpu_pressure = RatioOf(pool.cpu_pressure),
                            .memory_by_node = pool.memory_by_node,
                            .remote_bytes = pool.remote_bytes});
  }
  for (const auto& [id, node] : figures.nodes) {
    const NumaNode* const known = machine.FindNode(id);
    sample.nodes.push_back({.id = id,
                            .cpu_used = known == nullptr ? 0 : BusyCpus(figures, known->cpus),
                            .memory_bytes = node.used_bytes,
                            .container_bytes = node.container_bytes});
  }
  for (const auto& [name, monitor] : figures.monitors) {
    sample.monitors.push_back({.group = name,
                               .llc_bytes = monitor.llc_bytes,
                               .bandwidth = monitor.memory_bytes_per_second});
  }
  if (!per_container) return sample;
  for (const ContainerFigures& container : figures.containers)
    sample.containers.push_back(ContainerOf(container));
  return sample;
}

UsageSampler::Options UsageSamplerOptions(EventLoop& loop, Clock& clock, PolicyHost& host,
                                          const Machine& machine, const std::string& host_root,
                                          UsageMetrics* metrics,
                                          std::function<bool()> per_container) {
  const auto in_hand = std::make_shared<FileInHand>();
  UsageSampler::Options options{.loop = loop,
                                .clock = clock,
                                .subjects = [&host] { return UsageSubjects(host.manager()); },
                                .take = TakeFrom(host_root, in_hand),
                                .in_hand = in_hand};
  if (metrics != nullptr) {
    options.told = [metrics, &machine,
                    per_container = std::move(per_container)](const UsageFigures& figures) {
      metrics->Show(UsageMetricsOf(figures, machine, per_container()));
    };
    options.lost = [metrics] { metrics->Clear(); };
  }
  return options;
}

}  // namespace resmgr
