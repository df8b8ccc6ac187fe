// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/node_commands.h"

#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

class PoliciesCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "policies"; }
  std::string_view summary() const override { return "List the policies; * is the active one."; }
  std::string_view description() const override {
    return "Lists the policies that the running daemon has. The active one is marked with *.";
  }

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
  std::string_view name() const override { return "pools"; }
  std::string_view summary() const override {
    return "Draw the active policy's pools with their CPUs, memory and containers.";
  }
  std::string_view description() const override {
    return R"(Draws the pools of the active policy as a tree, each with the containers in it.

  SHARED       CPUs that the pool's containers may run on together
  FREE         how much of these can still be asked for, the pools above and below considered;
               below 0 where more is asked for than there is
  EXCLUSIVE    CPUs that belong to single containers
  MEMORY USED  what the containers here and below may use; empty where the memory is that of the
               pool above

Long lists of CPUs end with their number; -o json has them all.)";
  }

 private:
  bool Watchable() const override { return true; }
  std::string_view Method() const override { return "Pools"; }
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
