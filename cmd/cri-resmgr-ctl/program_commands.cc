// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cri-resmgr-ctl/cli.h"
#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/characters.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"

namespace resmgr {
namespace {

// Short, since these commands also work without a daemon: shell completion must not wait for one
// that hangs.
constexpr std::chrono::milliseconds kShortPatience{1'500};

// The daemon's answer; null if there is none.
Reply AnswerOf(const std::string& socket, std::string_view method) {
  return AskForReply(socket, method, "{}", kShortPatience).value_or(Reply());
}

std::string TextIn(const Reply& object, const char* member) {
  const auto found = object.is_object() ? object.find(member) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

class VersionCommand final : public Command {
 public:
  VersionCommand()
      : Command("version", "Show the version of this program and of the running daemon.",
                "Shows the version of this program and, if it runs, of the daemon.") {}
  void Declare(CommandLine& line) override {
    line.Choice("o", {"table", "json"}, "The output format.", &output_);
  }
  Status Run(std::ostream& out) override {
    const std::string daemon = TextIn(AnswerOf(socket(), "Status"), "version");
    if (output_ == "json") {
      const Reply versions = {{"ctl", program().version}, {"daemon", daemon}};
      out << PrintableJson(OrderedJsonText(versions)) << '\n';
      return OkStatus();
    }
    out << "cri-resmgr-ctl " << program().version << '\n'
        << "cri-resmgr     " << (daemon.empty() ? "not reached" : Printable(daemon, 64)) << '\n';
    return OkStatus();
  }

 private:
  std::string output_ = "table";
};

class HelpCommand final : public Command {
 public:
  HelpCommand()
      : Command(
            "help", "Explain a command, or list the commands.",
            "Explains a command as its flag -help does; without an argument, lists the commands.") {
  }
  void Declare(CommandLine& line) override { line.Arguments("[COMMAND]", &arguments_); }
  Status Run(std::ostream& out) override {
    if (arguments_.size() > 1) return InvalidArgument("help takes one command");
    const CommandList& commands = *program().commands;
    if (arguments_.empty()) {
      out << Render(ProgramDocument(commands), HelpFormat::kText);
      return OkStatus();
    }
    const std::string& wanted = arguments_.front();
    const auto found = std::ranges::find(commands, wanted, &Command::name);
    if (found == commands.end()) return UnknownCommand(commands, wanted);
    out << Render(DocumentOf(**found), HelpFormat::kText);
    return OkStatus();
  }

 private:
  std::vector<std::string> arguments_;
};

class CompleteCommand final : public Command {
 public:
  CompleteCommand()
      : Command("complete", "Print names that the running daemon has, for shell completion.",
                "Prints the names of one kind that the running daemon has, a line each; none if it "
                "does\n"
                "not answer. The shell completion uses it.") {}
  void Declare(CommandLine& line) override {
    line.Arguments("pods|containers|namespaces|pools|policies|log-sources", &arguments_);
  }
  Status Run(std::ostream& out) override {
    if (arguments_.size() != 1) return InvalidArgument("complete takes one kind of names");
    const std::string& kind = arguments_.front();
    if (kind == "policies") {
      Add(AnswerOf(socket(), "Policies"), "name");
    } else if (kind == "pools") {
      Add(AnswerOf(socket(), "Pools"), "name");
    } else if (kind == "log-sources") {
      for (const Reply& source : AnswerOf(socket(), "LogSources"))
        if (source.is_string()) Add(source.get<std::string>());
    } else if (kind == "pods" || kind == "containers" || kind == "namespaces") {
      AddContainers(kind);
    } else {
      return InvalidArgument("there are no names of the kind \"{}\"", Printable(kind, 64));
    }
    for (const std::string& name : names_)
      out << name << '\n';
    return OkStatus();
  }

 private:
  // Leaves out names with other characters, which a shell would expand.
  void Add(const std::string& name) {
    const bool plain = std::ranges::all_of(name, [](char c) {
      return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.' || c == '/';
    });
    if (plain && !name.empty()) names_.insert(name);
  }
  void Add(const Reply& list, const char* member) {
    if (!list.is_array()) return;
    for (const Reply& object : list)
      Add(TextIn(object, member));
  }
  void AddContainers(std::string_view kind) {
    const Reply list = AnswerOf(socket(), "Containers");
    if (!list.is_array()) return;
    for (const Reply& container : list) {
      const std::string name_space = TextIn(container, "namespace");
      const std::string pod = name_space + '/' + TextIn(container, "pod");
      if (kind == "namespaces") Add(name_space);
      if (kind != "namespaces") Add(pod);
      if (kind == "containers") Add(pod + '/' + TextIn(container, "name"));
    }
  }

  std::vector<std::string> arguments_;
  std::set<std::string> names_;
};

}  // namespace

void AddProgramCommands(CommandList& commands) {
  Append<VersionCommand, HelpCommand, CompleteCommand>(commands);
}

}  // namespace resmgr
