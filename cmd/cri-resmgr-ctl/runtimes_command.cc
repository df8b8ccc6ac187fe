// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/runtimes_command.h"

#include <string_view>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

// The handlers of a runtime: "kata, kata-qemu".
std::string Handlers(const Reply& runtime, bool only) {
  // The runtime kDefaultRuntime (pkg/config/runtimes_config.h).
  if (!only && Cell(runtime, "name") == "default") return "all others";
  std::string text;
  for (const Reply& handler : runtime.value("handlers", Reply::array())) {
    const auto name = handler.get<std::string>();
    text.append(text.empty() ? "" : ", ").append(name.empty() ? "\"\"" : name);
  }
  if (only && text.empty()) return "all";
  return text.empty() ? "-" : text;
}

class RuntimesCommand final : public DaemonCommand {
 public:
  RuntimesCommand()
      : DaemonCommand(
            "runtimes", "List the container runtimes behind the relay, and whether they answer.",
            R"(Lists the container runtimes to which the daemon relays calls. Each is asked for its version.

  STATE     connected; away: nothing listens on its socket; hanging: it does not answer
  SINCE     when this state began; only with several runtimes
  PODS      the pods that are known of each runtime, or that the only runtime lists; likewise
            CONTAINERS
  HANDLERS  the handlers of runtimeClasses that it serves; with one runtime those that it reports,
            "" being the default one, and their aliases
  CALLS     calls of clients that this runtime answered, and ERRORS: those that failed; only with
            several runtimes

The last error of each runtime follows the table.)") {}

 private:
  bool Watchable() const override { return true; }
  bool IsList() const override { return true; }
  std::string_view Method() const override { return "Runtimes"; }
  std::string Table(const Reply& reply) const override { return RuntimesText(reply, style()); }
};

}  // namespace

std::string RuntimesText(const Reply& runtimes, const TableStyle& style) {
  if (runtimes.empty()) return "no CRI runtimes: the daemon relays no CRI calls\n";
  std::vector<TableRow> rows = {{"RUNTIME", "STATE", "SINCE", "VERSION", "PODS", "CONTAINERS",
                                 "CALLS", "ERRORS", "HANDLERS", "SOCKET"}};
  std::string errors;
  for (const Reply& runtime : runtimes) {
    rows.push_back({Cell(runtime, "name"), Cell(runtime, "state"), Cell(runtime, "since"),
                    Cell(runtime, "version"), Cell(runtime, "pods"), Cell(runtime, "containers"),
                    Cell(runtime, "calls"), Cell(runtime, "errors"),
                    Handlers(runtime, runtimes.size() == 1), Cell(runtime, "socket")});
    const std::string error = runtime.value("lastError", "");
    if (!error.empty()) errors += fmt::format("  {}: {}\n", Cell(runtime, "name"), error);
  }
  return FormatTable(rows, style) + errors;
}

std::unique_ptr<Command> MakeRuntimesCommand() {
  return std::make_unique<RuntimesCommand>();
}

}  // namespace resmgr
