// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cmdline/command_line.h"

namespace resmgr {

// The code for "values differ from the decided ones", which no error of a daemon has.
inline constexpr StatusCode kDrift = StatusCode::kDataLoss;

class Command;

// The program that a command is part of; valid while the command runs.
struct ProgramView {
  std::string_view version{};
  const std::vector<std::unique_ptr<Command>>* commands = nullptr;
  std::ostream* notes = nullptr;  // for notes, which are not part of the result
  std::string socket{};           // the running daemon's
  bool socket_told = false;       // -socket was given
};

// One command of cri-resmgr-ctl. Lives for one run of the program: Declare binds flags to members.
class Command {
 public:
  // `name`: the word that users type, "topology". `summary`: one line, for the list of commands.
  // `description`: the text at the top of `COMMAND -help`; it may have several paragraphs.
  Command(std::string_view name, std::string_view summary, std::string_view description)
      : name_(name), summary_(summary), description_(description) {}
  virtual ~Command() = default;

  std::string_view name() const { return name_; }
  std::string_view summary() const { return summary_; }
  std::string_view description() const { return description_; }

  virtual void Declare(CommandLine& line) = 0;
  // Called before Run.
  void Use(const ProgramView& program) { program_ = program; }
  // Called after the flags were read. Writes the result to `out`; an error becomes one line and the
  // exit code of ExitCodeOf.
  virtual Status Run(std::ostream& out) = 0;

 protected:
  const ProgramView& program() const { return program_; }
  const std::string& socket() const { return program_.socket; }
  std::ostream& notes() const { return *program_.notes; }

 private:
  const std::string_view name_;
  const std::string_view summary_;
  const std::string_view description_;
  ProgramView program_;
};

using CommandList = std::vector<std::unique_ptr<Command>>;

// All commands, in the order of the help.
CommandList AllCommands();

// Adds new commands of these classes.
template <typename... Commands>
void Append(CommandList& commands) {
  (commands.push_back(std::make_unique<Commands>()), ...);
}

// Each function is defined beside its commands' classes.
void AddStatusCommand(CommandList& commands);
void AddPoliciesCommand(CommandList& commands);
void AddTopologyCommand(CommandList& commands);
void AddPoolsCommand(CommandList& commands);
void AddContainersCommand(CommandList& commands);
void AddTopCommands(CommandList& commands);
void AddExplainCommand(CommandList& commands);
void AddHistoryCommand(CommandList& commands);
void AddStageCommands(CommandList& commands);
void AddAuditCommand(CommandList& commands);
void AddControlCommands(CommandList& commands);
void AddDumpCommand(CommandList& commands);
void AddUninstallCommand(CommandList& commands);
void AddSimulateCommand(CommandList& commands);
void AddProgramCommands(CommandList& commands);

}  // namespace resmgr
