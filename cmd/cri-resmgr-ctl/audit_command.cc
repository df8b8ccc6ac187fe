// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/audit_command.h"

#include <string_view>
#include <vector>

#include "pkg/base/table.h"

namespace resmgr {
namespace {

class AuditCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "audit"; }
  std::string_view summary() const override {
    return "Compare what containers really have with what was decided; -repair mends it.";
  }
  std::string_view description() const override {
    return R"(Reads the cgroup of each running container and asks the runtime what it has noted, and lists what is
not as the daemon has decided: CPUs, memory nodes, and what else the policy decides about.

  WHERE  cgroup: another program has written into the container's cgroup
         effective: a cgroup above the container's leaves less than was decided
         runtime: the runtime's own notes differ; its next update would put these in force

With -repair what was decided is sent to these containers again; that does not help against a cgroup
above. The daemon does the same by itself: see audit in its configuration.)";
  }

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("repair", "Send what was decided to containers that have something else.", &repair_);
  }
  std::string_view Method() const override { return "Audit"; }
  StatusOr<Reply> Request() const override { return Reply{{"repair", repair_}}; }
  std::string Table(const Reply& reply) const override { return AuditText(reply); }

  bool repair_ = false;
};

class UninstallCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "uninstall"; }
  std::string_view summary() const override {
    return "Give all containers back what their own requests ask for, before a removal.";
  }
  std::string_view description() const override {
    return R"(Before cri-resmgr is removed from a node: no container stays bound to the CPUs and memory nodes that a
policy chose. -dry-run tells what would change; -apply does it and waits until the runtime has. From
then on calls pass unread and no other configuration is taken, until the daemon is started again.

  cri-resmgr-ctl uninstall -dry-run
  cri-resmgr-ctl uninstall -apply

Then point the kubelet at the runtime's own socket, and stop the daemon.)";
  }

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("dry-run", "Tell what would change.", &dry_run_);
    line.Flag("apply", "Do it.", &apply_);
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
  const std::string summary =
      fmt::format("{} containers compared, {} other than decided, {} left out while they change\n",
                  Cell(report, "checked"), Cell(report, "drifted"), Cell(report, "changing"));
  return (rows.size() > 1 ? FormatTable(rows) : "") + notes + summary;
}

std::string UninstallText(const Reply& answer, bool applied) {
  std::string moves = MovesTable(answer.at("moves"));
  if (!applied) return moves;
  const bool done = answer.value("done", false);
  return moves + (done ? "done: no container is bound by cri-resmgr any more\n" : "");
}

std::unique_ptr<Command> MakeAuditCommand() {
  return std::make_unique<AuditCommand>();
}

std::unique_ptr<Command> MakeUninstallCommand() {
  return std::make_unique<UninstallCommand>();
}

}  // namespace resmgr
