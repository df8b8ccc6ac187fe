// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/node_commands.h"

#include <string_view>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/pools_drawing.h"
#include "pkg/base/terminal.h"

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
               below into account; negative if more is requested than there is. For a balloon
               it includes idle CPUs by which the balloon may grow
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

class ClassesCommand final : public DaemonCommand {
 public:
  ClassesCommand()
      : DaemonCommand(
            "classes",
            "List the classes in use, with their containers, and what the machine lacks for them.",
            R"(Lists the classes that the configuration, policies or the annotations of pods ask for, with the
containers that have them. An inactive one has no effect, or not all of it: the reason names the
file that is missing, or what the kernel answered.

  interrupts  interrupts go to other CPUs
  workqueues  the kernel's unbound work runs on other CPUs
  quota       the pod has no CPU quota
  partition   the CPUs are a scheduling domain of their own
  idle        the longest time that a CPU may take to wake up
  clock       the governor of the clock
  cpu         classes of CPUs: clock, energy preference, boost, idle states
  rdt         parts of caches and memory bandwidth
  blockio     limits and weights of block devices
  scheduling  scheduler, I/O priority and burst
  memory      limits of the container's cgroup below its memory limit, and memory policies)") {}

 private:
  bool Watchable() const override { return true; }
  std::string_view Method() const override { return "Classes"; }
  std::string Table(const Reply& reply) const override { return ClassesText(reply); }
};

// Index and name: "10-logger".
std::string NameOf(const Reply& plugin) {
  const std::string index = plugin.value("index", "");
  return index.empty() ? Cell(plugin, "name") : fmt::format("{}-{}", index, Cell(plugin, "name"));
}

std::string Median(const Reply& plugin) {
  const uint64_t micros = plugin.value("p50Micros", uint64_t{0});
  return micros == 0 ? "-" : fmt::format("{} us", micros);
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

void AddPoliciesCommand(CommandList& commands) {
  Append<PoliciesCommand>(commands);
}

void AddPoolsCommand(CommandList& commands) {
  Append<PoolsCommand>(commands);
}

std::string ClassesText(const Reply& classes) {
  if (classes.empty()) return "No classes are in use.\n";
  std::vector<TableRow> rows = {{"KIND", "NAME", "STATE", "CONTAINERS", "REASON"}};
  for (const Reply& one : classes) {
    rows.push_back({Cell(one, "kind"), Cell(one, "name"), Cell(one, "state"),
                    ListCell(one, "containers"), Cell(one, "reason")});
  }
  return FormatTable(rows);
}

void AddStageCommands(CommandList& commands) {
  Append<PluginsCommand, RuntimesCommand, ClassesCommand>(commands);
}

std::string PluginsText(const Reply& plugins, const TableStyle& style) {
  if (plugins.empty()) return "no plugins\n";
  std::vector<TableRow> rows = {{"PLUGIN", "KIND", "STATE", "CALLS", "FAILURES", "P50", "EVENTS"}};
  std::string errors;
  for (const Reply& plugin : plugins) {
    rows.push_back({NameOf(plugin), Cell(plugin, "kind"), Cell(plugin, "state"),
                    Cell(plugin, "calls"), Cell(plugin, "failures"), Median(plugin),
                    ListCell(plugin, "events")});
    const std::string error = plugin.value("lastError", "");
    if (!error.empty()) errors += fmt::format("  {}: {}\n", NameOf(plugin), error);
  }
  return FormatTable(rows, style) + errors;
}

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

}  // namespace resmgr
