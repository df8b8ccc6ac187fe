// SPDX-License-Identifier: Apache-2.0
#include "cmd/cri-resmgr-ctl/cli.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/config/command_line.h"
#include "pkg/config/suggest.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

constexpr std::string_view kProgram = "cri-resmgr-ctl";
constexpr std::string_view kDefaultSocket = "/var/run/cri-resmgr/cri-resmgr-admin.sock";
constexpr std::string_view kSocketHelp = "Where the running daemon listens (its -admin-socket).";

std::string Summary(const CommandList& commands) {
  std::string text =
      "Looks at a running cri-resmgr, changes it, and tries placements without one.\n\nCommands:";
  for (const auto& command : commands)
    text += fmt::format("\n  {:<12}{}", command->name(), command->summary());
  return text + fmt::format("\n\n\"{} COMMAND -help\" explains a command and its flags.", kProgram);
}

StatusOr<Command*> FindCommand(const CommandList& commands, std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& command : commands) {
    if (command->name() == name) return command.get();
    known.push_back(command->name());
  }
  const std::string hint = DidYouMean(name, known);
  return InvalidArgument("unknown command \"{}\"{}", Printable(name, 64),
                         hint.empty() ? "; -help lists what there is" : hint);
}

void DeclareSocket(CommandLine& line, std::optional<std::string>& socket) {
  line.Flag("socket", "PATH", kSocketHelp, kDefaultSocket, [&socket](std::string_view path) {
    socket = path;
    return OkStatus();
  });
}

Status RunCommand(Command& command, std::optional<std::string> socket, int argc,
                  const char* const* argv, std::ostream& out) {
  CommandLine line(fmt::format("{} {}", kProgram, command.name()), command.description());
  command.Declare(line);
  DeclareSocket(line, socket);
  RESMGR_RETURN_IF_ERROR(line.Parse(argc, argv));
  if (line.help_requested()) {
    out << line.Help();
    return OkStatus();
  }
  command.UseSocket(StripUnixPrefix(socket ? *socket : kDefaultSocket), socket.has_value());
  return command.Run(out);
}

Status Run(int argc, const char* const* argv, std::string_view version, const CommandList& commands,
           std::ostream& out) {
  // Flags before the command are the program's, those behind it the command's; -socket is both.
  int command_at = 1;
  while (command_at < argc && argv[command_at][0] == '-') {
    const std::string_view flag = argv[command_at];
    // Its value stands behind it.
    if (flag == "-socket" || flag == "--socket") ++command_at;
    ++command_at;
  }
  command_at = std::min(command_at, argc);

  bool print_version = false;
  std::optional<std::string> socket;
  std::vector<std::string> arguments;
  CommandLine line(kProgram, Summary(commands));
  DeclareSocket(line, socket);
  line.Flag("version", "Print the version and exit.", &print_version);
  line.Arguments("COMMAND [FLAG...]", &arguments);
  RESMGR_RETURN_IF_ERROR(line.Parse(command_at, argv));
  if (line.help_requested()) {
    out << line.Help();
    return OkStatus();
  }
  if (print_version) {
    out << kProgram << ' ' << version << '\n';
    return OkStatus();
  }
  if (command_at >= argc) return InvalidArgument("no command given; -help lists what there is");
  RESMGR_ASSIGN_OR_RETURN(Command* const command, FindCommand(commands, argv[command_at]));
  return RunCommand(*command, socket, argc - command_at, argv + command_at, out);
}

}  // namespace

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
      return 1;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kResourceExhausted:
      return 2;
    default:
      return 3;
  }
}

int RunCli(int argc, const char* const* argv, std::string_view version, const CommandList& commands,
           std::ostream& out, std::ostream& err) {
  Status status = Run(argc, argv, version, commands, out);
  out.flush();
  // A full disk must not look like success to a script.
  if (status.ok() && !out) status = Unavailable("the output cannot be written");
  if (!status.ok()) err << kProgram << ": " << Message(status) << '\n';
  return ExitCodeOf(status);
}

}  // namespace resmgr
