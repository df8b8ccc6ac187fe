// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/audit_command.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/terminal.h"

namespace resmgr {
namespace {

class AuditCommand final : public DaemonCommand {
 public:
  AuditCommand()
      : DaemonCommand(
            "audit",
            "Compare the values in force with those that were decided; -repair restores them.",
            R"(Compares running containers with what the daemon decided: CPUs, memory nodes, and other values
that the policy sets. It reads the cgroup of each container and asks the runtime for the values
that it has recorded, and lists the differences. Files of the host that classes want otherwise
follow in a table of their own.

  WHERE  cgroup: another program has written to the container's cgroup
         effective: a cgroup above the container's one allows less than was decided
         runtime: the runtime has recorded other values, which its next update would apply
         affinity: the container's processes inherited a CPUAffinity of the runtime's service
         hierarchy: the cgroups cannot take the value, for example without the controller cpuset

-repair sends the decided values to these containers again. This has no effect on a cgroup above,
a partition of cgroup v2, or an inherited affinity: the lines below the table name the cause and
what to do.
The exit status is 3 if a value differs and, with -repair, if that value cannot be restored.
The daemon runs the same comparison by itself: see audit in its configuration.)") {}

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("repair", "Send the decided values again to containers that differ.", &repair_);
  }
  std::string_view Method() const override { return "Audit"; }
  StatusOr<Reply> Request() const override { return Reply{{"repair", repair_}}; }
  std::string Table(const Reply& reply) const override { return AuditText(reply); }
  Status Outcome(const Reply& reply) const override { return AuditOutcome(reply, repair_); }

  bool repair_ = false;
};

class UninstallCommand final : public DaemonCommand {
 public:
  UninstallCommand()
      : DaemonCommand(
            "uninstall",
            "Lift all restrictions of containers, before cri-resmgr is removed from a node.",
            R"(Run this before cri-resmgr is removed from a node: it lifts all restrictions to CPUs and memory
nodes that a policy has decided, and gives files of the host that classes have changed their former
values back. -dry-run lists the changes; -apply makes them and waits until the
runtime has carried them out. From then on calls are forwarded unread and every other
configuration is refused, until the daemon is started again.

  cri-resmgr-ctl uninstall -dry-run
  cri-resmgr-ctl uninstall -apply

Then set the kubelet's endpoint to the runtime's own socket, and stop the daemon.)") {}

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("dry-run", "List the changes without making them.", &dry_run_);
    line.Flag("apply", "Make the changes.", &apply_);
  }
  std::string_view Method() const override { return "Uninstall"; }
  StatusOr<Reply> Request() const override {
    if (dry_run_ == apply_) return InvalidArgument("uninstall takes either -dry-run or -apply");
    return Reply{{"apply", apply_}};
  }
  std::string Table(const Reply& reply) const override { return UninstallText(reply, apply_); }
  Status Outcome(const Reply& reply) const override {
    if (!apply_ || reply.value("done", false)) return OkStatus();
    return Unavailable(
        "not done yet: the runtime has not answered for all containers; the daemon goes on, run "
        "this again");
  }

  bool dry_run_ = false;
  bool apply_ = false;
};

// The count is missing in reports of older daemons.
std::string NotFoundText(const Reply& report) {
  const int64_t unread = report.value("unread", int64_t{0});
  return unread == 0 ? "" : fmt::format("{} not found, ", unread);
}

// Whether a repair, which sends the values again, can mend the difference. It cannot change a
// parent cgroup, nor what running processes have inherited.
bool IsMendedByRepair(const Reply& drift) {
  const std::string where = drift.value("where", "");
  return (where == "cgroup" || where == "runtime") && drift.value("why", "").empty();
}

// The causes that lie outside of containers, each with the containers that it affects.
std::string CausesText(const Reply& report) {
  std::vector<std::pair<std::string, std::set<std::string>>> causes;
  for (const Reply& container : report.at("containers")) {
    for (const Reply& drift : container.at("drifts")) {
      const std::string why = drift.value("why", "");
      if (why.empty()) continue;
      auto cause = std::ranges::find(causes, why, [](const auto& known) { return known.first; });
      if (cause == causes.end()) cause = causes.insert(causes.end(), {why, {}});
      cause->second.insert(Cell(container, "container"));
    }
  }
  std::string text;
  for (const auto& [why, containers] : causes) {
    const auto more = std::ssize(containers) - 1;
    text += fmt::format("{}{}: {}\n", *containers.begin(),
                        more == 0 ? "" : " and " + CountText(more, "more container"), why);
  }
  return text;
}

}  // namespace

std::string AuditText(const Reply& report) {
  std::vector<TableRow> rows = {{"CONTAINER", "WHERE", "VALUE", "DECIDED", "ACTUAL", "REPAIR"}};
  std::string notes;
  for (const Reply& container : report.at("containers")) {
    const char* const repair = container.value("sentAgain", false) ? "sent again" : "-";
    for (const Reply& drift : container.at("drifts")) {
      rows.push_back({Cell(container, "container"), Cell(drift, "where"), Cell(drift, "value"),
                      Cell(drift, "decided"), Cell(drift, "actual"), repair});
    }
    if (const std::string why = container.value("unread", ""); !why.empty())
      notes += fmt::format("not compared: {}: {}\n", Cell(container, "container"), why);
  }
  if (const std::string why = report.value("runtimeProblem", ""); !why.empty())
    notes += fmt::format("what the runtime reports is not compared: {}\n", why);
  std::vector<TableRow> files = {{"FILE", "WANTED", "ACTUAL", "REPAIR"}};
  for (const Reply& file : report.value("files", Reply::array())) {
    const std::string unread = file.value("unread", "");
    files.push_back({Cell(file, "file"), Cell(file, "wanted"),
                     unread.empty() ? Cell(file, "actual") : unread,
                     file.value("repaired", false) ? "written again" : "-"});
  }
  if (const std::string why = report.value("filesProblem", ""); !why.empty())
    notes += fmt::format("the files of classes are not compared: {}\n", why);
  const std::string summary =
      fmt::format("{} compared, {} other than decided, {}{} left out while they change\n",
                  CountText(report.value("checked", int64_t{0}), "container"),
                  Cell(report, "drifted"), NotFoundText(report), Cell(report, "changing"));
  return (rows.size() > 1 ? FormatTable(rows) : "") + CausesText(report) +
         (files.size() > 1 ? FormatTable(files) : "") + notes + summary;
}

Status AuditOutcome(const Reply& report, bool repair) {
  int64_t differ = 0;
  for (const Reply& container : report.at("containers")) {
    const Reply& drifts = container.at("drifts");
    const bool mended = repair && container.value("sentAgain", false) &&
                        std::ranges::all_of(drifts, &IsMendedByRepair);
    if (!drifts.empty() && !mended) ++differ;
  }
  int64_t files = 0;
  for (const Reply& file : report.value("files", Reply::array()))
    if (!file.value("repaired", false)) ++files;
  if (differ == 0 && files == 0) return OkStatus();
  if (differ == 0)
    return MakeStatus(kDrift, fmt::format("{} other than wanted", CountIs(files, "file")));
  return MakeStatus(kDrift, fmt::format("{} other than decided", CountIs(differ, "container")));
}

std::string UninstallText(const Reply& answer, bool applied) {
  std::string changes = MovesTable(answer.at("moves"));
  const Reply host = answer.value("host", Reply::array());
  if (!host.empty()) {
    std::vector<TableRow> rows = {{"FILE", "GETS BACK"}};
    for (const Reply& file : host)
      rows.push_back({Cell(file, "file"), Cell(file, "before")});
    changes += FormatTable(rows);
  }
  if (!applied) return changes;
  const bool done = answer.value("done", false);
  return changes + (done ? "done: no container is bound by cri-resmgr any more\n" : "");
}

void AddAuditCommand(CommandList& commands) {
  Append<AuditCommand>(commands);
}

void AddUninstallCommand(CommandList& commands) {
  Append<UninstallCommand>(commands);
}

}  // namespace resmgr
