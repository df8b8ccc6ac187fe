// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/history_command.h"

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/parse.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

// Longest reason or error in the table, in bytes; -o json has all of it.
constexpr size_t kLongestText = 160;

class HistoryCommand final : public DaemonCommand {
 public:
  std::string_view name() const override { return "history"; }
  std::string_view summary() const override {
    return "List the latest decisions about containers, including refusals.";
  }
  std::string_view description() const override {
    return R"(Lists the latest decisions of the running daemon, the newest one last: which containers were
placed, moved, released or refused, and which updates the runtime failed to carry out. The daemon
keeps about a thousand of them until it exits.

  cri-resmgr-ctl history
  cri-resmgr-ctl history -n 20)";
  }

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("n", "N", "Show the newest N only; 0: all that are kept.", &count_);
  }
  std::string_view Method() const override { return "History"; }
  StatusOr<Reply> Request() const override {
    if (count_ < 0) return InvalidArgument("-n: {} is less than 0", count_);
    return count_ > 0 ? Reply{{"count", count_}} : Reply::object();
  }

  std::string Table(const Reply& reply) const override {
    if (reply.empty()) return "nothing was done yet\n";
    std::vector<TableRow> rows = {
        {"TIME", "EVENT", "CONTAINER", "CPUS", "EXCLUSIVE", "MEMS", "WHY"}};
    for (const Reply& entry : reply) {
      const bool error = Cell(entry, "error") != "-";
      rows.push_back({Cell(entry, "time"), Cell(entry, "event"), Text(entry, "container"),
                      Cell(entry, "cpus"), Cell(entry, "exclusive"), Cell(entry, "mems"),
                      Text(entry, error ? "error" : "reason")});
    }
    return FormatTable(rows);
  }

  static std::string Text(const Reply& entry, const char* key) {
    return Printable(Cell(entry, key), kLongestText);
  }

  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeHistoryCommand() {
  return std::make_unique<HistoryCommand>();
}

}  // namespace resmgr
