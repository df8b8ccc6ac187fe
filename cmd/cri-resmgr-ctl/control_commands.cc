// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/convert_config.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "cmd/cri-resmgr-ctl/input.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

class ConfigCommand final : public DaemonCommand {
 public:
  ConfigCommand()
      : DaemonCommand(
            "config", "Show, check or change the configuration of the running daemon.",
            R"(Shows the configuration in force, checks a file against the machine, or applies a file to the
running daemon. `check` lists the containers that would move, or whose CPU shares or quota
would change, and those that would lose exclusive CPUs. `set` applies the whole configuration or
nothing of it, and refuses one by which containers would lose exclusive CPUs unless -force is given.
The configuration is kept over restarts until an agent or another `set` replaces it, or
`cri-resmgr -reset-config` removes it; `set` exits with 2 if it is in force and cannot be kept, as
on a full disk. `convert` needs no daemon: it prints a configuration of
another project (nri-plugins, or cri-resource-manager's balloons, podpools, static-pools,
dynamic-pools) as one of this daemon. `check` and `set` take policy objects of nri-plugins, and
ConfigMaps for the agent, as they are.

  cri-resmgr-ctl config show
  cri-resmgr-ctl config check static.yaml
  cri-resmgr-ctl config check worker-7-configmap.yaml
  cri-resmgr-ctl config set static.yaml
  cri-resmgr-ctl config set -force static.yaml
  cri-resmgr-ctl config convert -from nri-plugins balloonspolicy.yaml)") {}
  Status Run(std::ostream& out) override {
    return Verb() == "convert" ? Convert(out) : DaemonCommand::Run(out);
  }

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("force", "With set: apply it even if containers lose exclusive CPUs.", &force_);
    line.Flag("from", "KIND", "With convert: what the file is.", &from_);
    line.Flag("f", "FILE",
              "The file, as with kubectl: `config check -f FILE`; - is standard input.", &file_);
    line.Arguments("show|check FILE|set FILE|convert FILE", &arguments_);
  }

  bool HasLines(std::string_view member) const override { return member == "yaml"; }

  Status Outcome(const Reply& reply) const override {
    const std::string why = reply.value("notSaved", "");
    if (why.empty()) return OkStatus();
    return Unavailable("it is in force, and will be lost at a restart: it cannot be saved: {}",
                       why);
  }

  std::string Verb() const { return arguments_.empty() ? "show" : arguments_.front(); }

  // The file, if exactly one is given, as an argument or by -f; else "".
  std::string File() const {
    if (arguments_.size() == 2 && file_.empty()) return arguments_.back();
    return arguments_.size() == 1 ? file_ : "";
  }

  std::string_view Method() const override {
    const std::string verb = Verb();
    if (verb == "check") return "ConfigCheck";
    if (verb == "set") return force_ ? "ConfigForce" : "ConfigSet";
    return "ConfigShow";
  }

  StatusOr<Reply> Request() const override {
    const std::string verb = Verb();
    if (force_ && verb != "set") return InvalidArgument("-force is for config set");
    if (!from_.empty()) return InvalidArgument("-from is for config convert");
    if (verb == "show" && arguments_.size() <= 1 && file_.empty()) return Reply::object();
    std::string file = File();
    if ((verb != "check" && verb != "set") || file.empty()) {
      return InvalidArgument("config takes: show, check FILE, set FILE or convert FILE");
    }
    const std::string name = NameOfInput(file);
    RESMGR_ASSIGN_OR_RETURN(std::string text, ReadNamedInput(file, kMaxConfigSize));
    if (IsPolicyObject(text)) {
      RESMGR_ASSIGN_OR_RETURN(ConvertedConfig converted, ConvertConfig("nri-plugins", text, name));
      Tell(converted.notes);
      text = std::move(converted.yaml);
      file = NameOfConverted(file);
    }
    return Reply{{"name", name}, {"text", text}};
  }

  std::string Table(const Reply& reply) const override {
    if (Verb() == "show") {
      return fmt::format("# from {}\n{}", Cell(reply, "source"),
                         reply.at("yaml").get<std::string>());
    }
    std::string warnings;
    for (const Reply& warning : reply.value("warnings", Reply::array()))
      warnings += fmt::format("warning: {}\n", warning.get<std::string>());
    if (Verb() == "set") {
      return fmt::format("in force: policy {}\n{}", Cell(reply, "policy"), warnings);
    }
    const Reply& losses = reply.at("losses");
    const std::string lost =
        losses.empty()
            ? ""
            : fmt::format("these containers lose exclusive CPUs, which needs -force:\n{}\n",
                          LossesTable(losses));
    // Older daemons do not report movesKnown.
    const std::string moves = reply.value("movesKnown", true) || !reply.at("moves").empty()
                                  ? MovesTable(reply.at("moves"))
                                  : "which containers move is not known yet: the null policy is "
                                    "active, which knows none\n";
    return fmt::format("{}valid: policy {}\n{}{}", lost, Cell(reply, "policy"), warnings, moves);
  }

  static std::string LossesTable(const Reply& losses) {
    std::vector<TableRow> rows = {{"CONTAINER", "EXCLUSIVE", "THEN", "ON CPUS"}};
    for (const Reply& move : losses) {
      rows.push_back({Printable(Cell(move, "container")), Cell(move.at("from"), "exclusive"),
                      Cell(move.at("to"), "exclusive"), Cell(move.at("to"), "cpus")});
    }
    return FormatTable(rows);
  }

  Status Convert(std::ostream& out) {
    if (force_) return InvalidArgument("-force is for config set");
    const std::string file = File();
    if (file.empty() || from_.empty()) {
      return InvalidArgument("config convert takes -from KIND and a FILE; kinds are {}",
                             fmt::join(ConvertibleKinds(), ", "));
    }
    RESMGR_ASSIGN_OR_RETURN(const std::string text, ReadNamedInput(file, kMaxConfigSize));
    RESMGR_ASSIGN_OR_RETURN(const ConvertedConfig converted,
                            ConvertConfig(from_, text, NameOfInput(file)));
    Tell(converted.notes);
    if (as_json()) {
      const Reply reply = {{"yaml", converted.yaml}, {"notes", converted.notes}};
      out << PrintableJson(OrderedJsonText(reply)) << '\n';
    } else {
      out << converted.yaml;
    }
    return OkStatus();
  }

  void Tell(const std::vector<std::string>& notes) const {
    for (const std::string& note : notes)
      DaemonCommand::notes() << "note: " << Printable(note, note.size()) << '\n';
  }

  std::vector<std::string> arguments_;
  std::string from_;
  std::string file_;
  bool force_ = false;
};

class RebalanceCommand final : public DaemonCommand {
 public:
  RebalanceCommand()
      : DaemonCommand(
            "rebalance", "List the containers for which there are better CPUs; -apply moves them.",
            "Asks the active policy for better places for the running containers, and lists the "
            "moves.\n"
            "They are made with -apply only. With -by use, containers move between shared pools by "
            "what they\n"
            "use and how long they wait for CPUs; what the moves bring is measured, and those that "
            "bring too\n"
            "little are taken back.") {}

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("apply", "Move the containers.", &apply_);
    line.Choice("by", {"rules", "use"},
                "What decides: the policy's rules for what containers ask for, or what they use.",
                &by_);
    line.Flag("moves", "N",
              "With -by use: how many containers move at most, not usage.RebalanceMoves.", &moves_);
  }
  bool ByUse() const { return by_ == "use"; }
  std::string_view Method() const override { return ByUse() ? "RebalanceByUse" : "Rebalance"; }
  StatusOr<Reply> Request() const override {
    Reply request = {{"apply", apply_}};
    if (!moves_) return request;
    const std::optional<int64_t> moves = ParseInt(*moves_);
    if (!ByUse() || !moves) return InvalidArgument("-moves takes a number, and needs -by use");
    request["moves"] = *moves;
    return request;
  }
  std::string Table(const Reply& reply) const override {
    if (!ByUse()) return MovesTable(reply.at("moves"));
    const Reply& last = reply.at("last");
    std::string text = RoundText(reply.at("byUse"));
    if (!last.is_null() && last != reply.at("byUse"))
      text += fmt::format("\nthe last one, of {}:\n{}", Cell(last, "time"), RoundText(last));
    return text;
  }

  static std::string RoundText(const Reply& round) {
    std::vector<TableRow> rows = {{"CONTAINER", "FROM", "TO", "USED", "WAITS", "GAIN", "STATE"}};
    for (const Reply& move : round.at("moves")) {
      const std::string waits = Cell(move, "pressure");
      rows.push_back({Cell(move, "container"), Cell(move, "from"), Cell(move, "to"),
                      fmt::format("{:.2f}", move.value("used", 0.0)),
                      waits == "-" ? waits : fmt::format("{:.0f} %", move.value("pressure", 0.0)),
                      fmt::format("{:.1f}", move.value("gain", 0.0)), Cell(move, "state")});
    }
    std::string text = rows.size() > 1 ? FormatTable(rows) : "no container moves\n";
    text += fmt::format("CPUs that are lacking: {:.1f}, predicted {:.1f}, measured {}\n",
                        round.value("lacking", 0.0), round.value("lackingPredicted", 0.0),
                        Cell(round, "lackingMeasured"));
    const std::string note = Cell(round, "note");
    return note == "-" ? text : text + note + "\n";
  }

  bool apply_ = false;
  std::string by_ = "rules";
  std::optional<std::string> moves_;
};

class ReleaseClaimCommand final : public DaemonCommand {
 public:
  ReleaseClaimCommand()
      : DaemonCommand(
            "release-claim",
            "Give the CPUs of a ResourceClaim back for whose release the kubelet does not ask.",
            R"(Gives the CPUs that a ResourceClaim holds on this node back, as the kubelet has it done when the
last pod with the claim has ended. `status` names the claims that need this: the API server does not
have them any more, and the kubelet has not asked for their release. Refused for a claim of which a
container runs. A claim that `status` does not name may be for a pod that is about to start; with
-force it is released all the same, and the containers of such a pod are refused then.

  cri-resmgr-ctl release-claim shop/fast
  cri-resmgr-ctl release-claim 8ec6fd12-bb08-4936-a857-866f50153c21)") {}

 private:
  void DeclareMore(CommandLine& line) override {
    line.Flag("force", "Release it even if a pod may be about to start with it.", &force_);
    line.Arguments("CLAIM", &arguments_);
  }
  std::string_view Method() const override { return "ReleaseClaim"; }
  StatusOr<Reply> Request() const override {
    if (arguments_.size() != 1)
      return InvalidArgument("release-claim takes one claim: its uid or NAMESPACE/NAME");
    return Reply{{"claim", arguments_.front()}, {"force", force_}};
  }
  std::string Table(const Reply& reply) const override {
    return fmt::format("released CPUs {} of the claim with uid {}\n", Cell(reply, "cpus"),
                       Cell(reply, "uid"));
  }

  std::vector<std::string> arguments_;
  bool force_ = false;
};

class LogCommand final : public DaemonCommand {
 public:
  LogCommand()
      : DaemonCommand(
            "log", "Change the log level of the running daemon until its next configuration.",
            R"(Sets the lowest severity that is logged (debug, info, warn, error), for all sources or for one,
until the next configuration or restart.

  cri-resmgr-ctl log debug
  cri-resmgr-ctl log debug resmgr)") {}

 private:
  void DeclareMore(CommandLine& line) override {
    line.Arguments("debug|info|warn|error [SOURCE]", &arguments_);
  }
  std::string_view Method() const override { return "Log"; }
  StatusOr<Reply> Request() const override {
    if (arguments_.empty() || arguments_.size() > 2) {
      return InvalidArgument("log takes a level and, if wanted, a source");
    }
    return Reply{{"level", arguments_.front()},
                 {"source", arguments_.size() == 2 ? arguments_.back() : ""}};
  }
  std::string Table(const Reply&) const override { return ""; }

  std::vector<std::string> arguments_;
};

}  // namespace

void AddControlCommands(CommandList& commands) {
  Append<ConfigCommand, RebalanceCommand, ReleaseClaimCommand, LogCommand>(commands);
}

}  // namespace resmgr
