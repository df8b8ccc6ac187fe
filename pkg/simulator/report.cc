// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/report.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/base/amount_text.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"

namespace resmgr {
namespace {

using nlohmann::ordered_json;

// How many containers with the same change are named.
constexpr size_t kNamedChanges = 3;
constexpr size_t kErrorLength = 1024;

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

bool IsOfClaim(const StepEffect& effect) {
  return effect.op == "prepare" || effect.op == "unprepare";
}

TableRow ToRow(const StepEffect& effect) {
  const std::string name =
      effect.container.empty() ? effect.pod : effect.pod + "/" + effect.container;
  const bool gone = effect.cpus.empty() && effect.shares == 0;
  return {fmt::format("{}", effect.step),
          effect.op,
          OrDash(Printable(name)),
          OrDash(effect.cpus),
          OrDash(effect.exclusive),
          OrDash(effect.mems),
          gone || IsOfClaim(effect) ? "-" : fmt::format("{}", effect.shares),
          gone || effect.quota < 0 ? "-" : fmt::format("{}", effect.quota),
          OrDash(Printable(effect.pool))};
}

// "0-3 -> 0-1", and any change of the memory nodes.
std::string WhatChanged(const StepEffect::Change& change) {
  const auto move = [](const std::string& from, const std::string& to) {
    return fmt::format("{} -> {}", OrDash(from), OrDash(to));
  };
  if (change.old_mems == change.mems) return move(change.old_cpus, change.cpus);
  std::string mems = "mems " + move(change.old_mems, change.mems);
  if (change.old_cpus == change.cpus) return mems;
  return move(change.old_cpus, change.cpus) + ", " + mems;
}

// One line for all containers with the same change; the lines are in the order of their first
// containers.
std::vector<std::string> ChangeLines(const std::vector<StepEffect::Change>& changes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const StepEffect::Change& change : changes) {
    const std::string what = WhatChanged(change);
    auto group = std::ranges::find(groups, what, [](const auto& each) { return each.first; });
    if (group == groups.end()) group = groups.insert(group, {what, {}});
    group->second.push_back(Printable(change.pod + "/" + change.container));
  }
  std::vector<std::string> lines;
  for (const auto& [what, names] : groups)
    lines.push_back(fmt::format("{}: {}", what, FirstOf(names, kNamedChanges)));
  return lines;
}

// "2 on node 0, 6 on node 1".
std::string ByNode(const CpuSet& cpus, const Machine& machine) {
  std::vector<std::string> parts;
  for (const NumaNode& node : machine.nodes()) {
    const CpuSet here = cpus & node.cpus;
    if (!here.empty()) parts.push_back(fmt::format("{} on node {}", here.size(), node.id));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The overhead of pods, which is not a part of the containers' resources; empty if no pod has any.
std::string OverheadLine(const SimulatedNode& node) {
  const std::vector<Overhead> overheads = node.Overheads();
  if (overheads.empty()) return "";
  Overhead sum;
  for (const Overhead& overhead : overheads)
    sum += overhead;
  return fmt::format("pod overhead   {}m CPU and {} MiB of {}, beside the containers\n",
                     sum.cpu.value, sum.memory.value >> 20,
                     CountText(std::ssize(overheads), "pod"));
}

// The reason for the container's place, and below it the alternatives.
std::string Explanation(const StepEffect& effect, const std::string& indent) {
  std::string text;
  if (!effect.reason.empty()) {
    text += fmt::format("{}{}\n", indent, Printable(effect.reason, kErrorLength));
  }
  for (const std::string& line : effect.candidates)
    text += fmt::format("{}  {}\n", indent, Printable(line, kErrorLength));
  return text;
}

// "rdt gold by pool shared: L3:0=fff".
std::string ClassLine(const PreviewedClass& one) {
  std::string line = one.kind;
  if (!one.name.empty()) line += " " + one.name;
  line += " by " + one.source;
  return one.value.empty() ? line : line + ": " + one.value;
}

ordered_json LineOf(const StepEffect& effect) {
  ordered_json changed = ordered_json::array();
  for (const StepEffect::Change& change : effect.changed) {
    changed.push_back({{"pod", change.pod},
                       {"container", change.container},
                       {"cpus", change.cpus},
                       {"mems", change.mems}});
  }
  ordered_json line = {
      {"step", effect.step},           {"op", effect.op},         {"pod", effect.pod},
      {"container", effect.container}, {"cpus", effect.cpus},     {"mems", effect.mems},
      {"exclusive", effect.exclusive}, {"shares", effect.shares}, {"quota", effect.quota},
      {"pool", effect.pool},           {"reason", effect.reason}, {"error", effect.error},
      {"changed", std::move(changed)}};
  if (effect.classes.empty()) return line;
  ordered_json classes = ordered_json::array();
  for (const PreviewedClass& one : effect.classes)
    classes.push_back(
        {{"kind", one.kind}, {"name", one.name}, {"source", one.source}, {"value", one.value}});
  line["classes"] = std::move(classes);
  return line;
}

}  // namespace

std::string ToJson(const StepEffect& effect) {
  return PrintableJson(OrderedJsonText(LineOf(effect)));
}

std::string ToPageJson(const StepEffect& effect, const CpuSet& reserved) {
  ordered_json line = LineOf(effect);
  line["qos"] = effect.qos;
  line["cpuLimit"] = effect.cpu_limit.value;
  line["memoryLimit"] = effect.memory_limit.value;
  line["reserved"] = reserved.ToString();
  for (size_t i = 0; i < effect.changed.size(); ++i)
    line["changed"][i]["exclusive"] = effect.changed[i].exclusive;
  return PrintableJson(OrderedJsonText(line));
}

std::string ToTable(const std::vector<StepEffect>& effects, bool explain) {
  std::vector<TableRow> rows = {
      {"STEP", "OP", "CONTAINER", "CPUS", "EXCLUSIVE", "MEMS", "SHARES", "QUOTA", "POOL"}};
  for (const StepEffect& effect : effects)
    rows.push_back(ToRow(effect));
  const std::string table = FormatTable(rows);
  const std::vector<std::string_view> lines = Split(table, '\n');
  std::string text = fmt::format("{}\n", lines.front());
  const std::string indent(lines.front().find("CONTAINER"), ' ');
  for (size_t i = 0; i < effects.size(); ++i) {
    text += fmt::format("{}\n", lines[i + 1]);
    if (!effects[i].error.empty()) {
      text += fmt::format("{}{}\n", indent, Printable(effects[i].error, kErrorLength));
    }
    if (explain || IsOfClaim(effects[i])) text += Explanation(effects[i], indent);
    for (const PreviewedClass& one : effects[i].classes)
      text += fmt::format("{}{}\n", indent, Printable(ClassLine(one), kErrorLength));
    for (const std::string& line : ChangeLines(effects[i].changed))
      text += indent + line + "\n";
  }
  return text;
}

Totals TotalsOf(const std::vector<StepEffect>& effects, const SimulatedNode& node) {
  Totals totals;
  std::set<std::pair<std::string, std::string>> moved;
  std::set<std::pair<std::string, std::string>> followed;
  for (const StepEffect& effect : effects) {
    if (effect.op == "prepare") {
      if (!effect.cpus.empty()) totals.claims.insert(effect.pod);
      if (!effect.error.empty()) totals.refused_claims.insert(effect.pod);
    } else if (!effect.error.empty()) {
      ++totals.refused;
    } else if (effect.op == "create") {
      ++totals.placed;
    }
    for (const StepEffect::Change& change : effect.changed) {
      if (change.old_cpus == change.cpus) continue;
      (change.had_own ? moved : followed).insert({change.pod, change.container});
    }
  }
  for (const std::string& claim : totals.claims)
    totals.refused_claims.erase(claim);
  totals.moved = moved.size();
  totals.moved_sharing = followed.size();
  for (const RunningContainer& container : node.Running()) {
    if (const auto cpus = CpuSet::Parse(container.exclusive); cpus.ok()) totals.exclusive |= *cpus;
  }
  totals.claimed = node.Claimed();
  totals.exclusive |= totals.claimed;
  const Machine& machine = node.machine();
  totals.free = machine.allowed() - totals.exclusive;
  totals.broken = totals.free & machine.WithSiblings(totals.exclusive);
  return totals;
}

std::string Summary(const std::vector<StepEffect>& effects, const SimulatedNode& node) {
  const Totals totals = TotalsOf(effects, node);
  std::string text = fmt::format("placed         {}\n",
                                 CountText(static_cast<int64_t>(totals.placed), "container"));
  text += fmt::format("refused        {}\n", totals.refused);
  text += fmt::format("moved          {} with CPUs of their own, {} on shared CPUs\n", totals.moved,
                      totals.moved_sharing);
  if (!totals.claims.empty() || !totals.refused_claims.empty()) {
    text += fmt::format("claims         {} granted, {} refused; {} ({}) held at the end\n",
                        totals.claims.size(), totals.refused_claims.size(),
                        CountText(totals.claimed.size(), "CPU"), OrDash(totals.claimed.ToString()));
  }
  text += fmt::format("exclusive      {} ({})\n", CountText(totals.exclusive.size(), "CPU"),
                      OrDash(totals.exclusive.ToString()));
  text += fmt::format(
      "fragmentation  {} not exclusively assigned, {} of them on cores that are partly taken\n",
      CountText(totals.free.size(), "CPU"), totals.broken.size());
  text += fmt::format("               {}\n", OrDash(ByNode(totals.free, node.machine())));
  return text + OverheadLine(node);
}

}  // namespace resmgr
