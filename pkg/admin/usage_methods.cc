// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/usage_methods.h"

#include <set>
#include <string_view>
#include <utility>

#include "pkg/admin/node_json.h"
#include "pkg/admin/usage_json.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/usage/usage_subject.h"

namespace resmgr {
namespace {

StatusOr<CpuSet> ChosenCpus(const NodeView& node, const std::string& list) {
  CpuSet all;
  for (const Cpu& cpu : node.machine.cpus())
    all.Add(cpu.id);
  if (list.empty()) return all;
  RESMGR_ASSIGN_OR_RETURN(CpuSet chosen, CpuSet::Parse(list));
  if (const CpuSet unknown = chosen - all; !unknown.empty())
    return NotFound("the machine has no CPU {}", unknown.ToString());
  return chosen;
}

// Containers that run and of which nothing is known are listed, too, without figures.
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

void ReplyCpus(const NodeView& node, const CpuSet& chosen, bool brief,
               const UnaryServer::Reply& reply) {
  const auto answer = [&node, chosen, brief,
                       reply](const StatusOr<UsageSampler::Figures>& figures) {
    reply(OrderedJsonText(CpusJson({.machine = node.machine,
                                    .offline = node.offline(),
                                    .manager = node.host.manager(),
                                    .figures = figures.ok() ? figures->get() : nullptr,
                                    .brief = brief},
                                   chosen)));
  };
  if (node.usage == nullptr) return answer(Unavailable("use is not sampled"));
  node.usage->Look(answer);
}

}  // namespace

void Top(const NodeView& node, const std::string& what, bool wide,
         const UnaryServer::Reply& reply) {
  if (what == "cpus") return Cpus(node, {}, reply);
  const bool nodes = what == "nodes";
  if (!nodes && !what.empty() && what != "containers")
    return reply(InvalidArgument("\"{}\" is not one of nodes, cpus", Printable(what, 64)));
  if (node.usage == nullptr) return reply(Unavailable("use is not sampled"));
  node.usage->Look([&node, nodes, wide, reply](const StatusOr<UsageSampler::Figures>& figures) {
    if (!figures.ok()) return reply(figures.status());
    reply(OrderedJsonText(nodes ? NodesUsageJson(**figures, node.machine)
                                : AllContainersJson(node, **figures, wide)));
  });
}

void Cpus(const NodeView& node, const CpusRequest& request, const UnaryServer::Reply& reply) {
  const StatusOr<CpuSet> chosen = ChosenCpus(node, request.list);
  if (!chosen.ok()) return reply(chosen.status());
  ReplyCpus(node, *chosen, request.brief, reply);
}

}  // namespace resmgr
