// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/usage_methods.h"

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/admin/method_parts.h"
#include "pkg/admin/node_json.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_view.h"
#include "pkg/policy/conventions.h"
#include "pkg/usage/usage_counters.h"
#include "pkg/usage/use_rebalancer.h"

namespace resmgr {
namespace {

// Lists also running containers that were not sampled, without figures.
OrderedJson AllContainersJson(const NodeView& node, const UsageFigures& figures, bool wide) {
  std::set<std::string_view> known;
  for (const ContainerFigures& container : figures.containers)
    known.insert(container.subject.id);
  UsageFigures unknown{.since = figures.since};
  for (UsageSubject& subject : UsageSubjects(node.host.manager()))
    if (!known.contains(subject.id)) unknown.containers.push_back({.subject = std::move(subject)});
  OrderedJson list = ContainersUsageJson(figures, wide);
  for (OrderedJson& container : ContainersUsageJson(unknown, wide))
    list.push_back(std::move(container));
  return list;
}

void ReplyCpus(const NodeView& node, const CpuSet& chosen, const CpusRequest& request,
               const UnaryServer::Reply& reply) {
  const auto answer = [&node, chosen, brief = request.brief, unbound = request.unbound,
                       reply](const StatusOr<UsageSampler::Figures>& figures) {
    reply(OrderedJsonText(CpusJson({.machine = node.machine,
                                    .offline = node.offline(),
                                    .manager = node.host.manager(),
                                    .figures = figures.ok() ? figures->get() : nullptr,
                                    .brief = brief,
                                    .unbound = unbound},
                                   chosen)));
  };
  if (node.usage == nullptr) return answer(Unavailable("use is not sampled"));
  node.usage->Look(answer);
}

// Limit of the names in one answer: thousands of containers may share hundreds of CPUs.
constexpr size_t kMostNames = size_t{1} << 16;

// Rounds to a thousandth; measurements are less exact.
double Rounded(double number) {
  return std::round(number * 1000) / 1000;
}

template <typename Number>
OrderedJson OrNull(const std::optional<Number>& number) {
  if (!number) return nullptr;
  return *number;
}

OrderedJson RoundedOrNull(const std::optional<double>& number) {
  if (!number) return nullptr;
  return Rounded(*number);
}

OrderedJson ByNode(const std::map<int, int64_t>& bytes) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [node, amount] : bytes)
    object[std::to_string(node)] = amount;
  return object;
}

// The CPUs by their state, and the containers on each.
struct Owners {
  CpuSet exclusive;
  CpuSet shared;
  CpuSet reserved;
  struct Names {
    std::vector<std::string> listed;
    size_t more = 0;
  };
  std::map<int, Names> containers;
  size_t unbound = 0;  // running containers that are bound to no CPUs
};

Owners OwnersOf(const ResourceManager* manager, const CpuSet& chosen) {
  Owners owners;
  if (manager == nullptr) return owners;
  const Snapshot& snapshot = manager->snapshot();
  const size_t most = kMostNames / static_cast<size_t>(std::max(chosen.size(), 1));
  WithClaims(snapshot, manager->held_claims())
      .ForEachContainer([&](const Pod& pod, const Container& container) {
        if (container.state == ContainerState::kExited) return;
        owners.exclusive |= container.placement.exclusive;
        const CpuSet cpus = BoundCpus(container);
        if (cpus.empty()) {
          ++owners.unbound;
          return;
        }
        const std::string name = FullName(pod, container.name);
        for (const int cpu : cpus& chosen) {
          Owners::Names& names = owners.containers[cpu];
          if (names.listed.size() < most) {
            names.listed.push_back(name);
          } else {
            ++names.more;
          }
        }
      });
  for (const Zone& zone : manager->policy().Zones(snapshot)) {
    if (IsIsolatedPool(zone.name)) continue;
    (IsReservedPool(zone.name) ? owners.reserved : owners.shared) |= zone.shared;
  }
  return owners;
}

std::string_view StateOf(int cpu, const CpuSet& offline, const Machine& machine,
                         const Owners& owners) {
  if (offline.Contains(cpu)) return "offline";
  if (owners.exclusive.Contains(cpu)) return "exclusive";
  if (owners.reserved.Contains(cpu)) return "reserved";
  if (owners.shared.Contains(cpu)) return "shared";
  return machine.isolated().Contains(cpu) ? "isolated" : "unassigned";
}

// The ROUND in the answer of RebalanceByUse.
OrderedJson UseRoundJson(const UseRound& round) {
  OrderedJson moves = OrderedJson::array();
  for (const UseRound::Move& move : round.moves) {
    moves.push_back({{"container", move.container},
                     {"from", move.from},
                     {"to", move.to},
                     {"used", Rounded(move.used)},
                     {"pressure", RoundedOrNull(move.pressure)},
                     {"gain", Rounded(move.gain)},
                     {"state", ToString(move.state)},
                     {"reason", move.text}});
  }
  return {
      {"time", Rfc3339(round.time)},
      {"state", ToString(round.state)},
      {"measuredSeconds", std::chrono::duration_cast<std::chrono::seconds>(round.measured).count()},
      {"containers", round.containers},
      {"lacking", Rounded(round.lacking)},
      {"lackingPredicted", Rounded(round.lacking_predicted)},
      {"lackingMeasured", RoundedOrNull(round.lacking_after)},
      {"note", round.note},
      {"moves", std::move(moves)}};
}

StatusOr<std::string> Rebalanced(UseRebalancer& rebalancer, bool apply,
                                 std::optional<int> most_moves) {
  RESMGR_ASSIGN_OR_RETURN(const UseRound round,
                          apply ? rebalancer.Apply(most_moves) : rebalancer.Preview(most_moves));
  const auto& rounds = rebalancer.rounds();
  return OrderedJsonText({{"moves", MovesJson(round.placements)},
                          {"byUse", UseRoundJson(round)},
                          {"last", rounds.empty() ? OrderedJson() : UseRoundJson(rounds.back())}});
}

}  // namespace

void Top(const NodeView& node, const TopRequest& request, const UnaryServer::Reply& reply) {
  const std::string& what = request.what;
  if (what == "cpus") return Cpus(node, {.unbound = request.unbound}, reply);
  const bool nodes = what == "nodes";
  if (!nodes && !what.empty() && what != "containers")
    return reply(InvalidArgument("\"{}\" is not one of nodes, cpus", Printable(what, 64)));
  if (node.usage == nullptr) return reply(Unavailable("use is not sampled"));
  node.usage->Look(
      [&node, nodes, wide = request.wide, reply](const StatusOr<UsageSampler::Figures>& figures) {
        if (!figures.ok()) return reply(figures.status());
        reply(OrderedJsonText(nodes ? NodesUsageJson(**figures, node.machine)
                                    : AllContainersJson(node, **figures, wide)));
      });
}

void Cpus(const NodeView& node, const CpusRequest& request, const UnaryServer::Reply& reply) {
  const StatusOr<CpuSet> chosen = ChosenCpus(node.machine, request.list);
  if (!chosen.ok()) return reply(chosen.status());
  ReplyCpus(node, *chosen, request, reply);
}

OrderedJson ContainersUsageJson(const UsageFigures& figures, bool wide) {
  const std::string since = Rfc3339(figures.since);
  OrderedJson list = OrderedJson::array();
  for (const ContainerFigures& container : figures.containers) {
    const UsageSubject& subject = container.subject;
    const auto pressure = [&container](double Pressure::*member) -> OrderedJson {
      if (!container.cpu_pressure) return nullptr;
      return *container.cpu_pressure.*member;
    };
    list.push_back({{"namespace", subject.namespace_name},
                    {"pod", subject.pod},
                    {"container", subject.container},
                    {"id", subject.id},
                    {"cpus", subject.cpus.ToString()},
                    {"granted", Rounded(subject.granted)},
                    {"cpuUsed", RoundedOrNull(container.cpu_used)},
                    {"throttledPercent", RoundedOrNull(container.AnyThrottledPercent())},
                    {"cpuPressure10", pressure(&Pressure::some10)},
                    {"cpuPressure60", pressure(&Pressure::some60)},
                    {"memoryBytes", OrNull(container.memory_bytes)},
                    {"memoryByNode", ByNode(container.memory_by_node)},
                    {"remotePercent", RoundedOrNull(container.remote_percent)},
                    {"pool", subject.pool},
                    {"since", since}});
    if (!wide) continue;
    list.back()["oomKills"] = OrNull(container.events.oom_kills);
    list.back()["memoryHighEvents"] =
        container.events.high ? OrderedJson(container.high_events) : OrderedJson(nullptr);
  }
  return list;
}

OrderedJson NodesUsageJson(const UsageFigures& figures, const Machine& machine) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [id, node] : figures.nodes) {
    const NumaNode* const known = machine.FindNode(id);
    const CpuSet cpus = known == nullptr ? CpuSet() : known->cpus;
    list.push_back({{"id", id},
                    {"cpus", cpus.ToString()},
                    {"cpuUsed", Rounded(BusyCpus(figures, cpus))},
                    {"memoryBytes", OrNull(node.total_bytes)},
                    {"memoryUsed", OrNull(node.used_bytes)},
                    {"containerBytes", node.container_bytes},
                    {"otherPagesPercent", RoundedOrNull(node.other_pages_percent)}});
  }
  return list;
}

OrderedJson CpusJson(const CpuMap& map, const CpuSet& chosen) {
  const CpuSet offline = OfflineCpus(map.machine) | map.offline;
  const Owners owners = OwnersOf(map.manager, map.brief ? CpuSet() : chosen);
  OrderedJson list = OrderedJson::array();
  for (const int cpu : chosen) {
    OrderedJson busy = nullptr;
    if (map.figures != nullptr) {
      const auto found = map.figures->cpus.find(cpu);
      if (found != map.figures->cpus.end()) busy = Rounded(found->second.busy_percent);
    }
    OrderedJson& object = list.emplace_back(
        OrderedJson{{"id", cpu}, {"state", StateOf(cpu, offline, map.machine, owners)}});
    if (!map.brief) {
      const auto found = owners.containers.find(cpu);
      const Owners::Names names =
          found == owners.containers.end() ? Owners::Names() : found->second;
      object["containers"] = names.listed;
      if (names.more > 0) object["containersMore"] = names.more;
    }
    object["busyPercent"] = std::move(busy);
    if (map.unbound && owners.unbound > 0 && !offline.Contains(cpu))
      object["unbound"] = owners.unbound;
  }
  return list;
}

void RebalanceByUse(const NodeView& node, bool apply, std::optional<int> most_moves,
                    const UnaryServer::Reply& reply) {
  if (node.usage == nullptr || node.by_use == nullptr)
    return reply(Unavailable("use is not sampled"));
  node.usage->Look([&rebalancer = *node.by_use, apply, most_moves,
                    reply](const StatusOr<UsageSampler::Figures>& figures) {
    if (!figures.ok()) return reply(figures.status());
    reply(Rebalanced(rebalancer, apply, most_moves));
  });
}

}  // namespace resmgr
