// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/status_command.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include <fmt/ranges.h>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/terminal_text.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/terminal.h"
#include "pkg/model/problem.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

// Number and list of the CPUs: "2 (0-1)".
std::string Cpus(const Reply& reply, const char* key) {
  const std::string list = reply.value(key, "");
  if (list.empty()) return "0";
  return fmt::format("{} ({})", CpuSet::Parse(list).value_or(CpuSet()).size(), list);
}

// Notes reserved CPUs that containers share, since they are counted in both numbers.
std::string SharedToo(const Reply& reply) {
  const CpuSet reserved = CpuSet::Parse(reply.value("reserved", "")).value_or(CpuSet());
  const CpuSet shared = CpuSet::Parse(reply.value("shared", "")).value_or(CpuSet());
  return !reserved.empty() && reserved.IsSubsetOf(shared) ? ", which are among the shared ones"
                                                          : "";
}

std::string Containers(const Reply& reply) {
  const int64_t unsettled = reply.value("unsettled", int64_t{0});
  std::string text = Cell(reply, "containers");
  if (unsettled > 0) text += fmt::format(", {} not yet where they should be", unsettled);
  if (const int64_t bound = reply.value("stillBound", int64_t{0}); bound > 0)
    text +=
        fmt::format("; {} still bound to what a former policy chose", CountIs(bound, "container"));
  return text;
}

// The runbook's sections about these problems, each listed once.
std::string RunbooksOf(const Reply& problems) {
  std::error_code ignored;
  const std::string pages = PagesOf(std::filesystem::read_symlink("/proc/self/exe", ignored));
  std::vector<std::string> sections;
  for (const Reply& problem : problems) {
    if (!problem.is_object()) continue;
    const std::string section = pages + RunbookOf(problem.value("kind", ""));
    if (std::ranges::find(sections, section) == sections.end()) sections.push_back(section);
  }
  return fmt::format("{}", fmt::join(sections, ", "));
}

class StatusCommand final : public DaemonCommand {
 public:
  StatusCommand()
      : DaemonCommand(
            "status",
            "Show the running daemon: policy, configuration, health, pods and containers.",
            R"(Shows the state of the running daemon: the active policy and the source of its configuration,
whether the runtime is connected, the number of pods and containers, and which CPUs are exclusive,
shared and reserved. "problems" lists what needs attention: a runtime that cannot be reached,
containers that the runtime fails to update, CPUs that are decided and not in force, containers that
were refused in the last hour, pools that are asked for more than they have, a kubelet whose CPU
manager is on, a configuration that was refused, sockets that are not served, state that cannot be
saved, containers that are throttled, wait for CPUs or have their memory on other nodes. Each has
its kind, its numbers and what to try; "what to do" names the sections of the runbook.)") {}

 private:
  bool Watchable() const override { return true; }
  void DeclareMore(CommandLine& line) override {
    line.Flag("check", "Exit with status 1 if there are problems.", &check_);
  }
  std::string_view Method() const override { return "Status"; }
  StatusOr<Reply> Request() const override {
    if (check_ && watches())
      return InvalidArgument("-check looks once and -w goes on until Ctrl-C: give one of them");
    return Reply::object();
  }
  Status Outcome(const Reply& reply) const override {
    const size_t count = reply.value("problems", Reply::array()).size();
    if (!check_ || count == 0) return OkStatus();
    return FailedPrecondition("{}", CountText(static_cast<int64_t>(count), "problem"));
  }
  std::string Table(const Reply& reply) const override {
    std::vector<TableRow> rows = {
        {"version", Cell(reply, "version")},
        {"policy", Cell(reply, "policy")},
        {"configuration",
         Cell(reply, "config") + (reply.value("forced", false) ? " (forced)" : "")},
        {"up", TimeText(std::chrono::seconds(reply.value("uptimeSeconds", int64_t{0})))},
        {"runtime", WithSocket(Cell(reply, "runtime"), Cell(reply, "runtimeSocket"))},
    };
    if (const std::string served = reply.value("relaySocket", ""); !served.empty())
      rows.push_back({"serves", served});
    if (reply.contains("criSocket"))
      rows.push_back({"CRI", WithSocket(Cell(reply, "cri"), Cell(reply, "criSocket"))});
    rows.insert(rows.end(), {
                                {"pods", Cell(reply, "pods")},
                                {"containers", Containers(reply)},
                                {"CPUs online", Cpus(reply, "online")},
                            });
    if (!reply.value("offline", "").empty()) rows.push_back({"  offline", Cpus(reply, "offline")});
    if (reply.contains("exclusive")) {
      rows.push_back({"  exclusive", Cpus(reply, "exclusive")});
      rows.push_back({"  shared", Cpus(reply, "shared")});
      rows.push_back({"  reserved", Cpus(reply, "reserved") + SharedToo(reply)});
    }
    rows.push_back({"state", Cell(reply, "state")});
    if (const int64_t lost = reply.value("dumpLost", int64_t{0}); lost > 0) {
      rows.push_back({"dump", fmt::format("{} missing or incomplete", CountIs(lost, "call"))});
    }
    const Reply problems = reply.value("problems", Reply::array());
    if (problems.empty()) rows.push_back({"problems", "none"});
    for (const Reply& problem : problems)
      rows.push_back({&problem == &problems.front() ? "problems" : "", ProblemText(problem)});
    if (const std::string runbooks = RunbooksOf(problems); !runbooks.empty())
      rows.push_back({"what to do", runbooks});
    if (const auto last = reply.find("byUse"); last != reply.end())
      rows.push_back({"by use", fmt::format("{}, {}: {}", Cell(*last, "time"), Cell(*last, "state"),
                                            Cell(*last, "note"))});
    const Reply ended = reply.value("ended", Reply::array());
    for (const Reply& effect : ended) {
      rows.push_back({&effect == &ended.front() ? "ended" : "",
                      fmt::format("{}, {}: {}", Cell(effect, "kind"), Cell(effect, "ended"),
                                  Cell(effect, "message"))});
    }
    return FormatTable(rows);
  }

  bool check_ = false;
};

}  // namespace

std::string WithSocket(const std::string& state, const std::string& socket) {
  if (state.find(socket) != std::string::npos) return state;
  return fmt::format("{} ({})", state, socket);
}

std::string ProblemText(const Reply& problem) {
  // Older daemons send sentences in place of objects.
  if (problem.is_string()) return problem.get<std::string>();
  const std::string next = problem.value("next", "");
  return fmt::format("{}: {}{}{}", Cell(problem, "kind"), Cell(problem, "message"),
                     next.empty() ? "" : "; try: ", next);
}

void AddStatusCommand(CommandList& commands) {
  Append<StatusCommand>(commands);
}

std::string PagesOf(const std::filesystem::path& program) {
  const std::filesystem::path pages = program.parent_path().parent_path() / "share/doc/cri-resmgr";
  std::error_code ignored;
  const bool there = std::filesystem::exists(pages / "docs/troubleshooting.md", ignored);
  return there ? pages.string() + "/" : "";
}

}  // namespace resmgr
