// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

class PoliciesCommand final : public DaemonCommand {
 public:
  PoliciesCommand()
      : DaemonCommand(
            "policies", "List the policies; * is the active one.",
            "Lists the policies that the running daemon has. The active one is marked with *.") {}

 private:
  std::string_view Method() const override { return "Policies"; }
  std::string Table(const Reply& reply) const override {
    std::vector<TableRow> rows;
    for (const Reply& policy : reply) {
      rows.push_back({policy.value("active", false) ? "*" : " ", Cell(policy, "name"),
                      Cell(policy, "description")});
    }
    return rows.empty() ? "" : FormatTable(rows);
  }
};

class PoolsCommand final : public DaemonCommand {
 public:
  PoolsCommand()
      : DaemonCommand("pools",
                      "Draw the active policy's pools with their CPUs, memory and containers.",
                      R"(Draws the pools of the active policy as a tree, each with its containers.

  SHARED       CPUs that the containers of the pool share
  FREE         the part of these CPUs that can still be requested, taking the pools above and
               below into account; negative if more is requested than there is
  EXCLUSIVE    CPUs that are granted to single containers
  MEMORY USED  memory that the containers of this pool and the pools below may use; empty if the
               pool has the memory of the pool above

Long CPU lists are cut off and end with the number of CPUs; -o json has the full lists.)") {}

 private:
  bool Watchable() const override { return true; }
  std::string_view Method() const override { return "Pools"; }
  bool HasNoContainers(const Reply& reply) const override {
    return !reply.empty() && NoneHasContainers(reply);
  }
  std::string Table(const Reply& reply) const override { return DrawPools(reply); }
};

}  // namespace

std::unique_ptr<Command> MakePoliciesCommand() {
  return std::make_unique<PoliciesCommand>();
}

std::unique_ptr<Command> MakePoolsCommand() {
  return std::make_unique<PoolsCommand>();
}

}  // namespace resmgr
