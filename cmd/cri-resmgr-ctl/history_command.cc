// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/chrono.h>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "cmd/cri-resmgr-ctl/watch.h"
#include "pkg/base/characters.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/dump/yaml_text.h"
#include "pkg/kube/quantity.h"

namespace resmgr {
namespace {

constexpr std::chrono::seconds kFollowPause{1};
constexpr std::chrono::hours kLongestSince{24 * 366};

// Whether the entry's container is the pod's, or the named one: "[NAMESPACE/]POD[/CONTAINER]" or
// the beginning of that; or whether it may be.
bool IsAbout(const Reply& entry, std::string_view pod) {
  const std::string container = entry.value("container", "");
  // Only the first one of those that move together is named.
  if (container.find(" and ") != std::string::npos) return true;
  if (pod.find('/') != std::string_view::npos) return container.starts_with(pod);
  return std::string_view(container).substr(container.find('/') + 1).starts_with(pod);
}

// Whether the digits of a time, or of its beginning, are a date and a time of day.
bool IsOnTheClock(std::string_view time) {
  const auto number = [time](size_t at, size_t count) {
    return at < time.size() ? static_cast<int>(ParseInt(time.substr(at, count)).value_or(0)) : 0;
  };
  const std::chrono::year_month_day date(std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2))));
  return date.ok() && number(11, 2) < 24 && number(14, 2) < 60 && number(17, 2) < 60;
}

// The time of -since in the form of the entries. Users give a duration before now, or a time in
// that form, which may end early: times are compared as texts.
StatusOr<std::string> SinceText(const std::string& since) {
  const auto ago = ParseDuration(since, kLongestSince);
  if (ago) {
    const auto then =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now() - *ago);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::gmtime(then));
  }
  constexpr std::string_view kForm = "0000-00-00T00:00:00.000";
  constexpr size_t kDate = 10;
  const std::string_view time = std::string_view(since).substr(0, since.find_last_not_of('Z') + 1);
  const bool is_time = time.size() >= kDate && time.size() <= kForm.size() &&
                       std::equal(time.begin(), time.end(), kForm.begin(), [](char c, char form) {
                         return form == '0' ? IsDigit(c) : c == form;
                       });
  if (is_time && IsOnTheClock(time)) return std::string(time);
  return InvalidArgument(
      "-since: \"{}\" is neither a time like 10m or 2h nor one in UTC like "
      "2026-11-27T03:00:00",
      Printable(since, 64));
}

class HistoryCommand final : public DaemonCommand {
 public:
  HistoryCommand()
      : DaemonCommand(
            "history", "List the latest decisions about containers, including refusals.",
            R"(Lists the latest decisions of the running daemon, the newest one last: which containers were
placed, moved, released or refused, and which updates the runtime failed to carry out. The daemon
keeps about a thousand of them until it exits, and the last refusals for longer.

  cri-resmgr-ctl history
  cri-resmgr-ctl history -n 20
  cri-resmgr-ctl history -pod shop/web -since 10m
  cri-resmgr-ctl history -f

-f goes on when the daemon is started again.)") {}
  Status Run(std::ostream& out) override { return follow_ ? Follow(out) : DaemonCommand::Run(out); }

 private:
  bool IsList() const override { return true; }
  void DeclareMore(CommandLine& line) override {
    line.Flag("n", "N", "Show the newest N only; 0: all that are kept.", &count_);
    line.Flag("pod", "POD",
              "Only entries about [NAMESPACE/]POD, or pods whose names begin so, and moves of "
              "several containers, one of which is named.",
              &pod_);
    line.Flag("since", "TIME",
              "Only newer entries: 10m, 2h, or a UTC time such as 2026-11-27T03:00.", &since_);
    line.Flag("f", "Follow: go on and show new entries until Ctrl-C. JSON has one line each then.",
              &follow_);
  }
  std::string_view Method() const override { return "History"; }
  StatusOr<Reply> Request() const override {
    if (count_ < 0) return InvalidArgument("-n: {} is less than 0", count_);
    if (!since_.empty()) RESMGR_RETURN_IF_ERROR(SinceText(since_).status());
    // If this command itself selects entries, it needs all of them and applies the count
    // afterwards.
    const bool all = count_ == 0 || !pod_.empty() || !since_.empty() || follow_;
    return all ? Reply::object() : Reply{{"count", count_}};
  }

  Reply Arranged(Reply reply) const override { return follow_ ? reply : Chosen(std::move(reply)); }

  Reply Chosen(Reply reply) const {
    auto& entries = reply.get_ref<Reply::array_t&>();
    const std::string since = since_.empty() ? "" : SinceText(since_).value_or("");
    std::erase_if(entries, [&](const Reply& entry) {
      return (!pod_.empty() && !IsAbout(entry, pod_)) || entry.value("time", "") < since;
    });
    const auto most = static_cast<size_t>(count_);
    if (most > 0 && entries.size() > most && !answered_) {
      entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(most));
    }
    return reply;
  }

  std::string Table(const Reply& reply) const override {
    if (reply.empty() && follow_) return "";
    if (reply.empty() && (!pod_.empty() || !since_.empty()))
      return "none of the decisions that are kept matches -pod and -since\n";
    if (reply.empty()) return "nothing was done yet\n";
    std::vector<TableRow> rows;
    if (!has_header_) rows = {{"TIME", "EVENT", "CONTAINER", "CPUS", "EXCLUSIVE", "MEMS", "WHY"}};
    for (const Reply& entry : reply) {
      const bool error = Cell(entry, "error") != "-";
      rows.push_back({Cell(entry, "time"), Cell(entry, "event"), Cell(entry, "container"),
                      Cell(entry, "cpus"), Cell(entry, "exclusive"), Cell(entry, "mems"),
                      Cell(entry, error ? "error" : "reason")});
    }
    return FormatTable(rows, style());
  }

  Status Follow(std::ostream& out) {
    RESMGR_ASSIGN_OR_RETURN(const Reply request, Request());
    SetStyle(out);
    DaemonWait wait(notes());
    while (out.good()) {
      const StatusOr<Reply> entries = Ask(OrderedJsonText(request));
      if (!entries.ok()) RESMGR_RETURN_IF_ERROR(wait.After(entries.status()));
      if (entries.ok()) {
        wait.Answered();
        Show(Chosen(followed_.NewOf(*entries)), out);
      }
      std::this_thread::sleep_for(kFollowPause);
    }
    return OkStatus();
  }

  void Show(const Reply& entries, std::ostream& out) {
    if (as_table()) {
      out << TextOf(entries);
    } else if (!as_json()) {
      if (!entries.empty()) out << dump::ToYaml(entries);
    } else {
      for (const Reply& entry : entries)
        out << PrintableJson(OrderedJsonText(entry)) << '\n';
    }
    out << std::flush;
    answered_ = true;
    has_header_ |= !entries.empty();
  }

  int64_t count_ = 0;
  std::string pod_;
  std::string since_;
  bool follow_ = false;
  FollowedEntries followed_;
  bool answered_ = false;    // whether -f has shown the earlier entries
  bool has_header_ = false;  // whether the column names were printed
};

}  // namespace

void AddHistoryCommand(CommandList& commands) {
  Append<HistoryCommand>(commands);
}

}  // namespace resmgr
