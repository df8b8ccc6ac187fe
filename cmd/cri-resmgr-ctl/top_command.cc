// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/top_command.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"

namespace resmgr {
namespace {

// The member as a number; -1 if it is not known.
double NumberOf(const Reply& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? -1 : found->get<double>();
}

std::string NumberText(const Reply& object, const char* key, const char* unit) {
  const double number = NumberOf(object, key);
  if (number < 0) return "-";
  return *unit == '%' ? fmt::format("{:.0f} %", number) : fmt::format("{:.2f}", number);
}

std::string BytesCell(const Reply& object, const char* key) {
  const double bytes = NumberOf(object, key);
  return bytes < 0 ? "-" : BytesText(static_cast<int64_t>(bytes));
}

std::string CountCell(const Reply& object, const char* key) {
  const double count = NumberOf(object, key);
  return count < 0 ? "-" : fmt::format("{:.0f}", count);
}

// "12 % / 3 %": of the last 10 and 60 seconds.
std::string PressureText(const Reply& container) {
  if (NumberOf(container, "cpuPressure10") < 0) return "-";
  return fmt::format("{} / {}", NumberText(container, "cpuPressure10", "%"),
                     NumberText(container, "cpuPressure60", "%"));
}

std::string Bar(double percent) {
  constexpr int kWidth = 20;
  if (percent < 0) return "";
  const int filled = std::clamp(static_cast<int>(std::lround(percent * kWidth / 100)), 0, kWidth);
  return std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kWidth - filled), '.');
}

// The containers of a CPU, of which the first few are named, or all that the daemon names.
std::string ContainersText(const Reply& cpu, bool all) {
  constexpr size_t kNamed = 3;
  auto names = cpu.value("containers", std::vector<std::string>());
  if (names.empty()) return "-";
  const size_t most = all ? names.size() : kNamed;
  // The names that are not listed are counted only.
  names.resize(names.size() + cpu.value("containersMore", size_t{0}));
  return FirstOf(names, most);
}

// Tells of the containers that no CPU lists, since they are bound to none. "" without such ones.
std::string UnboundText(const Reply& cpus) {
  for (const Reply& cpu : cpus) {
    const int64_t unbound = cpu.value("unbound", int64_t{0});
    if (unbound == 0) continue;
    return fmt::format(
        "\n{} bound to no CPUs and may run on any: cri-resmgr-ctl containers -cpu {}\n",
        CountIs(unbound, "container"), Cell(cpu, "id"));
  }
  return "";
}

const char* MemberOf(std::string_view key) {
  if (key == "throttled") return "throttledPercent";
  if (key == "pressure") return "cpuPressure60";
  if (key == "memory") return "memoryBytes";
  return key == "remote" ? "remotePercent" : "cpuUsed";
}

class TopCommand final : public DaemonCommand {
 public:
  TopCommand()
      : DaemonCommand(
            "top", "Show what containers, memory nodes or CPUs really use.",
            R"(Shows what the running containers use, on average since the last sample (`usage.Interval`), or
what the memory nodes or the CPUs do. Where nothing was sampled lately, the answer takes a second.

  USED       CPUs that the container uses, and GRANTED: its own CPUs or, if that is more, its
             request
  THROTTLED  periods in which its quota, or that of its pod, was used up
  PRESSURE   time in which some task of it waited for a CPU, in the last 10 and 60 seconds; cgroup
             v2 only
  REMOTE     the part of its memory on other nodes than decided

With -o wide also

  OOM KILLS  processes of it that were killed for want of memory, since it was started
  HIGH       how often it reached memory.high since the last sample; cgroup v2 only

  cri-resmgr-ctl top -sort-by throttled -w
  cri-resmgr-ctl top nodes)") {}

 private:
  bool Watchable() const override { return true; }
  bool IsList() const override { return true; }
  void DeclareMore(CommandLine& line) override {
    line.Flag("n", "NAMESPACE", "Only containers of this namespace.", &namespace_);
    line.Choice("sort-by", {"cpu", "throttled", "pressure", "memory", "remote", "name"},
                "What to sort containers by.", &sort_by_);
    line.Arguments("[nodes|cpus]", &arguments_);
  }
  std::string_view Method() const override { return "Top"; }
  StatusOr<Reply> Request() const override {
    if (arguments_.size() > 1) return InvalidArgument("give one of nodes, cpus, or nothing");
    if (!ShowsContainers() && (!namespace_.empty() || sort_by_ != "cpu")) {
      return InvalidArgument("{} is for containers, not for {}",
                             namespace_.empty() ? "-sort-by" : "-n", What());
    }
    Reply request = {{"what", What()}};
    if (wide()) request["wide"] = true;
    if (as_table()) request["unbound"] = true;
    return request;
  }
  Reply Arranged(Reply reply) const override {
    if (!ShowsContainers()) return reply;
    if (!namespace_.empty()) {
      std::erase_if(reply.get_ref<Reply::array_t&>(), [this](const Reply& container) {
        return container.value("namespace", "") != namespace_;
      });
    }
    return SortedUsage(std::move(reply), sort_by_);
  }
  bool HasNoContainers(const Reply& reply) const override {
    if (What() == "nodes") return false;
    return What() == "cpus" ? NoneHasContainers(reply) : reply.empty();
  }
  std::string Table(const Reply& reply) const override {
    if (What() == "nodes") return NodesUsageText(reply, style());
    return What() == "cpus" ? CpusText(reply, style(), wide())
                            : ContainersUsageText(reply, style(), wide());
  }
  std::string What() const { return arguments_.empty() ? "" : arguments_[0]; }
  bool ShowsContainers() const { return What().empty() || What() == "containers"; }

  std::vector<std::string> arguments_;
  std::string namespace_;
  std::string sort_by_ = "cpu";
};

class CpusCommand final : public DaemonCommand {
 public:
  CpusCommand()
      : DaemonCommand(
            "cpus", "Show what each CPU is for, and how busy it is.",
            R"(Shows the CPUs of the machine, or those of a list: their state (exclusive, shared, reserved,
isolated: by the kernel's isolcpus and in no pool, unassigned, offline), how busy each was since the
last sample, and the containers that are bound to CPUs of which it is one. A claim that holds it is
listed as NAMESPACE/CLAIM/claim.

  cri-resmgr-ctl cpus 0-7,16)") {}

 private:
  bool Watchable() const override { return true; }
  bool IsList() const override { return true; }
  void DeclareMore(CommandLine& line) override { line.Arguments("[LIST]", &arguments_); }
  std::string_view Method() const override { return "Cpus"; }
  StatusOr<Reply> Request() const override {
    if (arguments_.size() > 1) return InvalidArgument("give one list of CPUs, as in 0-7,16");
    return Reply{{"cpus", arguments_.empty() ? "" : arguments_[0]}, {"unbound", as_table()}};
  }
  bool HasNoContainers(const Reply& reply) const override { return NoneHasContainers(reply); }
  std::string Table(const Reply& reply) const override { return CpusText(reply, style(), wide()); }

  std::vector<std::string> arguments_;
};

}  // namespace

Reply SortedUsage(Reply containers, std::string_view key) {
  const auto name = [](const Reply& container) {
    return std::tuple(container.value("namespace", ""), container.value("pod", ""),
                      container.value("container", ""));
  };
  std::ranges::stable_sort(containers.get_ref<Reply::array_t&>(),
                           [&](const Reply& a, const Reply& b) {
                             if (key == "name") return name(a) < name(b);
                             const char* const member = MemberOf(key);
                             return NumberOf(a, member) > NumberOf(b, member);
                           });
  return containers;
}

std::string ContainersUsageText(const Reply& containers, const TableStyle& style, bool wide) {
  if (containers.empty()) return "No running containers whose use is known.\n";
  std::vector<TableRow> rows = {{"NAMESPACE", "POD", "CONTAINER", "CPUS", "USED", "GRANTED",
                                 "THROTTLED", "PRESSURE", "MEMORY", "REMOTE", "POOL"}};
  if (wide) rows[0].insert(rows[0].end(), {"OOM KILLS", "HIGH"});
  for (const Reply& container : containers) {
    rows.push_back({Cell(container, "namespace"), Cell(container, "pod"),
                    Cell(container, "container"), Cell(container, "cpus"),
                    NumberText(container, "cpuUsed", ""), NumberText(container, "granted", ""),
                    NumberText(container, "throttledPercent", "%"), PressureText(container),
                    BytesCell(container, "memoryBytes"),
                    NumberText(container, "remotePercent", "%"), Cell(container, "pool")});
    if (!wide) continue;
    rows.back().insert(rows.back().end(), {CountCell(container, "oomKills"),
                                           CountCell(container, "memoryHighEvents")});
  }
  return FormatTable(rows, style);
}

std::string NodesUsageText(const Reply& nodes, const TableStyle& style) {
  if (nodes.empty()) return "The kernel tells no memory nodes.\n";
  std::vector<TableRow> rows = {
      {"NODE", "CPUS", "CPUS USED", "MEMORY", "USED", "BY CONTAINERS", "FOR OTHER NODES"}};
  for (const Reply& node : nodes) {
    rows.push_back({Cell(node, "id"), Cell(node, "cpus"), NumberText(node, "cpuUsed", ""),
                    BytesCell(node, "memoryBytes"), BytesCell(node, "memoryUsed"),
                    BytesCell(node, "containerBytes"), NumberText(node, "otherPagesPercent", "%")});
  }
  return FormatTable(rows, style);
}

std::string CpusText(const Reply& cpus, const TableStyle& style, bool wide) {
  if (cpus.empty()) return "No CPUs.\n";
  std::vector<TableRow> rows = {{"CPU", "STATE", "BUSY", "", "CONTAINERS"}};
  for (const Reply& cpu : cpus) {
    rows.push_back({Cell(cpu, "id"), Cell(cpu, "state"), NumberText(cpu, "busyPercent", "%"),
                    Bar(NumberOf(cpu, "busyPercent")), ContainersText(cpu, wide)});
  }
  return FormatTable(rows, style) + UnboundText(cpus);
}

void AddTopCommands(CommandList& commands) {
  Append<TopCommand, CpusCommand>(commands);
}

}  // namespace resmgr
