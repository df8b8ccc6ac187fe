// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/node_problems.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pkg/allocator/want_of_room.h"
#include "pkg/base/amount_text.h"
#include "pkg/classes/host_classes.h"
#include "pkg/resmgr/refusal_log.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

// Limit of containers or pools that problems of one kind name.
constexpr size_t kNamedOfAKind = 5;

// Problems of one kind, of which only the first few are described.
class FewProblems {
 public:
  // Whether the next problem is one of those to describe with Add.
  bool Next() { return ++count_ <= kNamedOfAKind; }
  void Add(Problem problem) { problems_.push_back(std::move(problem)); }
  // The problems, and one for all others: "and 3 more of them".
  std::vector<Problem> Take(std::string kind, std::string_view others, std::string next = "") {
    if (count_ > kNamedOfAKind) {
      Add({.kind = std::move(kind),
           .message = fmt::format("and {} more {}", count_ - kNamedOfAKind, others),
           .next = std::move(next)});
    }
    return std::move(problems_);
  }

 private:
  std::vector<Problem> problems_;
  size_t count_ = 0;
};

// Containers with fewer exclusive CPUs than they ask for while the CPUs `offline` are away.
std::vector<Problem> LackingCpus(const ResourceManager& manager, const CpuSet& offline) {
  FewProblems lacking;
  manager.snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const Placement& placement = container.placement;
    const bool exited = container.state == ContainerState::kExited;
    if (exited || !LacksCpus(placement.reason) || !lacking.Next()) return;
    const std::string name = FullName(pod, container.name);
    lacking.Add(
        {.kind = "cpu-offline",
         .message = fmt::format(
             "{} has {} for itself, which is less than it asks for, while CPUs {} are offline; it "
             "gets the others when they are back, or when others are free",
             name,
             placement.exclusive.empty() ? "no CPU" : CountText(placement.exclusive.size(), "CPU"),
             offline.ToString()),
         .objects = {name},
         .next = "cri-resmgr-ctl rebalance"});
  });
  return lacking.Take("cpu-offline", "of them");
}

std::vector<Problem> FailingUpdates(const ResourceManager& manager) {
  FewProblems failing;
  ForEachNotUpdated(manager, [&](const Pod& pod, const Container& container, const Status& error) {
    if (!failing.Next()) return;
    const std::string name = FullName(pod, container.name);
    failing.Add({.kind = "runtime",
                 .message = fmt::format("the runtime does not update {}: {}", name, Message(error)),
                 .objects = {name},
                 .next = UpdateRemedy(pod, container, error)});
  });
  return failing.Take("runtime", "of them");
}

std::string CpusOf(int64_t milli_cpu) {
  return fmt::format("{:.10g}", static_cast<double>(milli_cpu) / 1000);
}

// Pools whose shared containers request more CPUs than the pool shares.
std::vector<Problem> Overcommitted(const ResourceManager& manager) {
  FewProblems problems;
  for (const Zone& zone : manager.policy().Zones(manager.snapshot())) {
    const int64_t has = int64_t{1000} * zone.shared.size();
    const int64_t free = zone.free.value_or(MilliCpu{has - zone.shared_request.value}).value;
    // Requests are computed from CPU shares, which are rounded up by at most one milli-CPU each.
    if (free >= -int64_t{zone.containers} || !problems.Next()) continue;
    problems.Add(
        {.kind = "overcommit",
         .message = fmt::format("the containers of pool {} ask for {} CPUs more than its {} ({}): "
                                "they have less than they ask for when all of them are busy",
                                zone.name, CpusOf(-free), CountText(zone.shared.size(), "CPU"),
                                zone.shared.empty() ? "none" : zone.shared.ToString()),
         .objects = {"pool " + zone.name},
         .next = "cri-resmgr-ctl pools"});
  }
  return problems.Take("overcommit", "pools", "cri-resmgr-ctl pools");
}

std::vector<Problem> OfPlugins(const NodeView& node) {
  std::vector<Problem> problems;
  for (const PluginView& plugin : node.door.plugins()) {
    if (plugin.state == PluginView::State::kReady) continue;
    const std::string name =
        plugin.index.empty() ? plugin.name : fmt::format("{}-{}", plugin.index, plugin.name);
    problems.push_back({.kind = "plugin",
                        .message = fmt::format(
                            "the {} plugin {} is {}{}{}", plugin.kind, name, ToString(plugin.state),
                            plugin.last_error.empty() ? "" : ": ", plugin.last_error),
                        .objects = {name},
                        .next = "cri-resmgr-ctl plugins"});
  }
  return problems;
}

// Problems of runtimes. `runtime` is the state of the brain's connection; with several runtimes it
// is connected if one of them is.
std::vector<Problem> OfRuntimes(const NodeView& node, const std::string& runtime) {
  std::vector<Problem> problems;
  const bool connected = runtime == "connected";
  if (node.host.manager() != nullptr && !connected) {
    problems.push_back({.kind = "runtime",
                        .message = "the runtime is not connected: " + runtime,
                        .objects = {node.runtime_socket},
                        .next = "cri-resmgr-ctl runtimes"});
  }
  for (const RuntimeView& view : node.door.runtimes()) {
    if (view.state == RuntimeView::State::kConnected) continue;
    if (view.name == kDefaultRuntime && !connected) continue;
    problems.push_back(
        {.kind = "runtime",
         .since = view.since.value_or(std::chrono::system_clock::time_point()),
         .message = fmt::format("the runtime {} is {}{}{}", view.name, ToString(view.state),
                                view.last_error.empty() ? "" : ": ", view.last_error),
         .objects = {view.name, view.socket},
         .next = "cri-resmgr-ctl runtimes"});
  }
  return problems;
}

std::vector<Problem> OfOtherSocket(const NodeView& node) {
  const auto other = node.door.other_socket();
  if (!other || !other->used || other->reachable.ok()) return {};
  return {
      {.kind = "socket",
       .message = fmt::format("the runtime's CRI cannot be reached, which updates of containers "
                              "need where its NRI is older than 0.12.1: {}",
                              Message(other->reachable)),
       .objects = {other->path},
       .next = "set -runtime-socket to the socket of the runtime's CRI"}};
}

std::vector<Problem> OfConfiguration(const NodeView& node) {
  std::vector<Problem> problems;
  const Configurator& configurator = node.configurator;
  if (const auto& refusal = configurator.refusal()) {
    problems.push_back(
        {.kind = "config-rejected",
         .since = refusal->since,
         .message = fmt::format("the configuration from {} is refused, and that from {} stays in "
                                "force: {}",
                                refusal->sender, configurator.source(), refusal->why),
         .objects = {refusal->sender},
         .next = "cri-resmgr-ctl config check FILE"});
  }
  if (!configurator.stored().ok()) {
    problems.push_back(
        {.kind = "state",
         .message = fmt::format("the configuration from {} is not saved and will be lost at a "
                                "restart: {}",
                                configurator.source(), Message(configurator.stored())),
         .objects = {"configuration"},
         .next = "make room on the disk of -relay-dir, and deliver the configuration again"});
  }
  return problems;
}

std::vector<Problem> OfFiles(const NodeView& node) {
  std::vector<Problem> problems;
  if (!node.state_saved()) {
    problems.push_back({.kind = "state",
                        .message = "the state cannot be saved: see the log",
                        .next = "journalctl -u cri-resmgr -n 50"});
  }
  const uint64_t lost = node.dump_lost();
  if (node.dump_failing()) {
    problems.push_back({.kind = "dump",
                        .message = "a file of the dump cannot be written: see the log",
                        .objects = {"dump"},
                        .next = "journalctl -u cri-resmgr -n 50"});
  } else if (lost > 0 && node.dump_losing()) {
    problems.push_back({.kind = "dump",
                        .message = fmt::format("the dump lacks {} since the daemon was started",
                                               CountText(static_cast<int64_t>(lost), "call")),
                        .objects = {"dump"},
                        .next = "dump less, or to a faster disk, and restart the daemon"});
  }
  return problems;
}

std::vector<Problem> OfAuditor(const Auditor& auditor) {
  std::vector<Problem> problems = auditor.problems();
  for (Problem& problem : problems)
    if (problem.next.empty()) problem.next = "cri-resmgr-ctl audit";
  std::ranges::move(auditor.drifted(), std::back_inserter(problems));
  return problems;
}

}  // namespace

void ForEachNotUpdated(
    const ResourceManager& manager,
    const std::function<void(const Pod&, const Container&, const Status& error)>& visit) {
  manager.snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const Status error = manager.LastUpdateError(container.key);
    if (!error.ok()) visit(pod, container, error);
  });
}

std::vector<Problem> ProblemsOf(const NodeView& node) {
  std::vector<Problem> problems;
  const auto add = [&problems](std::vector<Problem> more) {
    std::ranges::move(more, std::back_inserter(problems));
  };
  const ResourceManager* const manager = node.host.manager();
  const bool places = node.configurator.current().policy.active != kNullPolicy;
  add(OfRuntimes(node, node.runtime_state()));
  add(OfPlugins(node));
  if (places) add(OfOtherSocket(node));
  if (const ResourceManager* const updating = node.host.updating_manager())
    add(FailingUpdates(*updating));
  if (places) {
    add(node.machine_problems());
    const CpuSet offline = OfflineCpus(node.machine) | node.offline();
    if (manager != nullptr && !offline.empty()) add(LackingCpus(*manager, offline));
  }
  if (manager != nullptr) add(Overcommitted(*manager));
  add(OfAuditor(node.auditor));
  if (node.usage != nullptr) add(node.usage->problems());
  if (node.classes != nullptr) add(node.classes->problems());
  add(OfConfiguration(node));
  add(node.own_problems());
  add(OfFiles(node));
  return node.problem_times->Completed(std::move(problems));
}

}  // namespace resmgr
