// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

struct Column {
  std::string_view title;
  const char* member;  // member of the daemon's answer
};

constexpr std::array<Column, 11> kColumns = {{{"NAMESPACE", "namespace"},
                                              {"POD", "pod"},
                                              {"CONTAINER", "name"},
                                              {"QOS", "qos"},
                                              {"STATE", "state"},
                                              {"CPUS", "cpus"},
                                              {"EXCLUSIVE", "exclusive"},
                                              {"MEMS", "mems"},
                                              {"SHARES", "shares"},
                                              {"QUOTA", "quota"},
                                              {"POOL", "pool"}}};

std::vector<std::string> ColumnNames() {
  std::vector<std::string> names;
  names.reserve(kColumns.size());
  for (const Column& column : kColumns)
    names.push_back(ToLower(column.title));
  return names;
}

bool IsSet(std::string_view member) {
  return member == "cpus" || member == "exclusive" || member == "mems";
}

// Orders sets by the lowest of their CPUs or nodes, empty ones last.
bool ComesBefore(const Reply& a, const Reply& b, const char* member) {
  const Reply& x = a.at(member);
  const Reply& y = b.at(member);
  if (x.is_string() && y.is_string() && IsSet(member)) {
    const auto lowest = [](const Reply& set) {
      const CpuSet cpus = CpuSet::Parse(set.get<std::string>()).value_or(CpuSet());
      return cpus.empty() ? CpuSet::kMaxId + 1 : cpus.First();
    };
    return lowest(x) < lowest(y);
  }
  return x < y;
}

class ContainersCommand final : public DaemonCommand {
 public:
  ContainersCommand()
      : DaemonCommand(
            "containers", "List the containers and where they run.",
            R"(Lists the containers that the daemon knows, with the CPUs and memory nodes that were decided for
them. QUOTA is in microseconds per period. `explain` shows the reasons.

  cri-resmgr-ctl containers -n shop -sort-by cpus
  cri-resmgr-ctl containers -l 'app in (web,api)' -w
  cri-resmgr-ctl containers -cpu 7 -o wide)") {}

 private:
  bool Watchable() const override { return true; }
  bool IsList() const override { return true; }

  void DeclareMore(CommandLine& line) override {
    filter_.Declare(line);
    line.Flag("cpu", "LIST", "Only containers that may run on one of these CPUs: 7, 0-3,8.",
              &cpus_);
    line.Flag("pool", "POOL", "Only containers of this pool.", &pool_);
    line.Flag("node", "NODE",
              "Only containers that may run on CPUs of this NUMA node, or have memory there.",
              &node_);
    line.Choice("sort-by", ColumnNames(), "The column to sort by. Default: the order of creation.",
                &sort_by_);
  }

  std::string_view Method() const override { return "Containers"; }

  StatusOr<Reply> Request() const override {
    Reply request = Reply::object();
    filter_.AddTo(request);
    if (!cpus_.empty()) request["cpus"] = cpus_;
    if (!pool_.empty()) request["pool"] = pool_;
    if (!node_.empty()) request["node"] = node_;
    return request;
  }

  Reply Arranged(Reply reply) const override {
    if (sort_by_.empty()) return reply;
    const auto column = std::ranges::find_if(
        kColumns, [this](const Column& each) { return EqualsIgnoreCase(each.title, sort_by_); });
    std::ranges::stable_sort(
        reply.get_ref<Reply::array_t&>(),
        [&column](const Reply& a, const Reply& b) { return ComesBefore(a, b, column->member); });
    return reply;
  }

  bool HasNoContainers(const Reply& reply) const override { return reply.empty(); }

  std::string Table(const Reply& reply) const override {
    if (reply.empty()) return "No containers.\n";
    std::vector<TableRow> rows(1);
    for (const Column& column : kColumns)
      rows[0].emplace_back(column.title);
    if (wide()) rows[0].insert(rows[0].end(), {"SHARED", "MEMORY LIMIT", "ID", "REASON"});
    for (const Reply& container : reply) {
      TableRow& row = rows.emplace_back();
      for (const Column& column : kColumns) {
        const bool unlimited = column.title == "QUOTA" && container.value("quota", 0) == -1;
        row.push_back(unlimited ? "none" : Cell(container, column.member));
      }
      if (!wide()) continue;
      const int64_t limit = container.value("memoryLimit", int64_t{0});
      row.insert(row.end(), {Cell(container, "shared"), limit > 0 ? BytesText(limit) : "none",
                             Cell(container, "id"), Cell(container, "reason")});
    }
    return FormatTable(rows, style());
  }

  ContainerFilter filter_;
  std::string cpus_;
  std::string pool_;
  std::string node_;
  std::string sort_by_;
};

}  // namespace

void AddContainersCommand(CommandList& commands) {
  Append<ContainersCommand>(commands);
}

}  // namespace resmgr
