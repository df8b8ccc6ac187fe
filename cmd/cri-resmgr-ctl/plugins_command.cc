// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/plugins_command.h"

#include <string_view>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "pkg/base/table.h"

namespace resmgr {
namespace {

// Index and name: "10-logger".
std::string NameOf(const Reply& plugin) {
  const std::string index = plugin.value("index", "");
  return index.empty() ? Cell(plugin, "name") : fmt::format("{}-{}", index, Cell(plugin, "name"));
}

std::string Median(const Reply& plugin) {
  const uint64_t micros = plugin.value("p50Micros", uint64_t{0});
  return micros == 0 ? "-" : fmt::format("{} us", micros);
}

// The subscribed events: "CreateContainer, StopContainer".
std::string Events(const Reply& plugin) {
  std::string text;
  for (const Reply& event : plugin.value("events", Reply::array()))
    text += (text.empty() ? "" : ", ") + event.get<std::string>();
  return text.empty() ? "-" : text;
}

class PluginsCommand final : public DaemonCommand {
 public:
  PluginsCommand()
      : DaemonCommand(
            "plugins", "List the plugins that change containers, with their calls and failures.",
            R"(Lists the plugins that the daemon serves, in the order in which they are called, including those
that have disconnected.

  STATE     ready; disconnected: its connection is closed, or it has not registered yet; failed:
            the daemon closed its connection because of an error, or could not start it
  FAILURES  calls that the plugin refused or did not answer in time
  P50       the median of its latest answer times

The last error of each plugin follows the table.)") {}

 private:
  bool Watchable() const override { return true; }
  bool IsList() const override { return true; }
  std::string_view Method() const override { return "Plugins"; }
  std::string Table(const Reply& reply) const override { return PluginsText(reply, style()); }
};

}  // namespace

std::string PluginsText(const Reply& plugins, const TableStyle& style) {
  if (plugins.empty()) return "no plugins\n";
  std::vector<TableRow> rows = {{"PLUGIN", "KIND", "STATE", "CALLS", "FAILURES", "P50", "EVENTS"}};
  std::string errors;
  for (const Reply& plugin : plugins) {
    rows.push_back({NameOf(plugin), Cell(plugin, "kind"), Cell(plugin, "state"),
                    Cell(plugin, "calls"), Cell(plugin, "failures"), Median(plugin),
                    Events(plugin)});
    const std::string error = plugin.value("lastError", "");
    if (!error.empty()) errors += fmt::format("  {}: {}\n", NameOf(plugin), error);
  }
  return FormatTable(rows, style) + errors;
}

std::unique_ptr<Command> MakePluginsCommand() {
  return std::make_unique<PluginsCommand>();
}

}  // namespace resmgr
